import { adoptTokens } from "@fermata/panel/tokens";

adoptTokens();
