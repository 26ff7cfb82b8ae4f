/** Texts of the plugin in the editor's interface. Replace or add languages with `opts.messages`. */
export const MESSAGES = {
  en: {
    fermata: {
      open: "Assistant",
      undoTurn: "Undo the assistant's last turn",
      missingPanel: "The assistant's panel is not loaded.",
    },
  },
  de: {
    fermata: {
      open: "Assistent",
      undoTurn: "Letzte Änderungen des Assistenten zurücknehmen",
      missingPanel: "Das Fenster des Assistenten ist nicht geladen.",
    },
  },
};
