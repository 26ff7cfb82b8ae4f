"""Where a provider is reached, and the key that opens it."""

from dataclasses import dataclass

from pydantic import SecretStr


@dataclass(frozen=True)
class Endpoint:
    """The key stays a `SecretStr`: it shows in no repr, log line or error."""

    base_url: str
    api_key: SecretStr

    @property
    def secret(self) -> str:
        """The bare key; keys are pasted by people, who paste blanks and line ends along."""
        return self.api_key.get_secret_value().strip()
