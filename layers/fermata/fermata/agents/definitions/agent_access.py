"""Read who may ask which agents, from the rules `auth.agents` of the files."""

from collections.abc import Collection, Sequence

from fermata.agents.definitions.agent_definition import AgentAccess
from fermata.agents.definitions.definition_problems import Place, ProblemList
from fermata.agents.definitions.source_models import AgentRules, AuthSource
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class AccessRules:
    """The rules of all files together."""

    rules: tuple[tuple[Place, AgentRules], ...]

    @classmethod
    def read(cls, roots: Sequence[Place], problems: ProblemList) -> "AccessRules":
        """Read the rules of files.

        Args:
            roots: The files.
            problems: Where mistakes are added.
        """
        rules: list[tuple[Place, AgentRules]] = []
        for root in roots:
            value = root.document.value.get("auth")
            auth = None if value is None else problems.check_model(root.inside("auth"), AuthSource, value)
            if auth is None:
                continue
            place = root.inside("auth", "agents")
            if isinstance(auth.agents.protected, list) and isinstance(auth.agents.public, list):
                problems.add_error(place, "Name either the agents that are protected, or those that are public.")
            rules.append((place, auth.agents))
        return cls(tuple(rules))

    def find(self, agent_id: str) -> AgentAccess:
        """Return who may ask an agent. Agents are public unless a rule protects them or gives them to roles."""
        is_public, roles = True, set[str]()
        for _, rules in self.rules:
            is_public &= not self._protects(rules, agent_id)
            roles |= {role for role, agents in rules.roles.items() if agent_id in agents}
        return AgentAccess(is_public=is_public and not roles, roles=tuple(sorted(roles)))

    def check_ids(self, agent_ids: Collection[str], problems: ProblemList) -> None:
        """Add a mistake for each agent that a rule names and no file defines.

        Args:
            agent_ids: Those that are defined, also with mistakes.
            problems: Where mistakes are added.
        """
        for place, rules in self.rules:
            lists: dict[tuple[str, ...], list[str]] = {("roles", role): agents for role, agents in rules.roles.items()}
            lists |= {(name,): one for name in ("protected", "public") if isinstance(one := getattr(rules, name), list)}
            for path, named in lists.items():
                for index, agent_id in enumerate(named):
                    if agent_id not in agent_ids:
                        message = f"The rule names the agent {agent_id!r}, which does not exist."
                        problems.add_error(place.inside(*path, index), message)

    @staticmethod
    def _protects(rules: AgentRules, agent_id: str) -> bool:
        if isinstance(rules.public, list):
            return agent_id not in rules.public
        return rules.protected is True or (isinstance(rules.protected, list) and agent_id in rules.protected)
