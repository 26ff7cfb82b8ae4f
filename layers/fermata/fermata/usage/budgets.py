"""Budgets: what a tenant, and each of its users, may spend in a day and in a month (UTC), in USD.

Limits lie in the settings, t#<tenant> budgets. Where the money went is counted in accounts.py.
"""

from decimal import Decimal

from pydantic import Field

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.usage.accounts import Account
from fermata.words.base import Word
from fermata.words.caller import Caller

REMEMBERED = 5
"""Seconds after which a change counts in turns that run."""
MOST_LIFTED = 1_000
THE_TENANT, EACH_USER = "tenant", "each"


class Limits(Word):
    """None: no limit. `since`: when there came to be one, from which time on what is spent is counted (accounts.py)."""

    daily_usd: Decimal | None = None
    monthly_usd: Decimal | None = None
    since: str = ""

    @property
    def are_set(self) -> bool:
        return self.daily_usd is not None or self.monthly_usd is not None


class Budgets(Word):
    """`each_user` is for every user who has no limits of their own in `users`.

    `lifted`: whose limits were taken away, and in which month, by `tenant`, `each`, `user <id>`. Until that month is
    over, what they spend is counted as if they had some, so that nothing is forgotten when they have again.
    """

    tenant: Limits = Limits()
    each_user: Limits = Limits()
    users: dict[str, Limits] = Field(default_factory=dict)
    lifted: dict[str, str] = Field(default_factory=dict)
    updated_at: str = ""
    updated_by: str = ""

    @property
    def are_set(self) -> bool:
        return self.tenant.are_set or self.each_user.are_set or any(limits.are_set for limits in self.users.values())

    def accounts(self, tenant: str, user: str, month: str) -> list[Account]:
        """Those that a request of this user has to fit into, and those that only count it."""
        tenants, own = self.tenant.are_set, self.of(user).are_set or self.each_user.are_set
        found = [
            (Account.of_tenant(tenant), self.tenant, tenants or self._are_lifted(month, THE_TENANT)),
            (Account.of_user(tenant, user), self.of(user), own or self._are_lifted(month, EACH_USER, _of_user(user))),
        ]
        return [
            account.limited(limits.daily_usd, limits.monthly_usd, limits.since)
            for account, limits, counts in found
            if counts
        ]

    def _are_lifted(self, month: str, *names: str) -> bool:
        return any(self.lifted.get(name) == month for name in names)

    def of(self, user: str) -> Limits:
        return self.users.get(user, self.each_user)


def read(desk: Desk, tenant: str) -> Budgets:
    item = desk.tables.get(desk.settings.settings_table, f"t#{tenant}", "budgets")
    return Budgets.model_validate(item) if item else Budgets()


def budgets_of(desk: Desk, tenant: str, *, fresh: bool = False) -> Budgets:
    """As this process last read them, a few seconds ago at most."""
    if fresh:
        desk.memory.forget(("budgets", tenant))
    return desk.memory.recall(("budgets", tenant), REMEMBERED, lambda: read(desk, tenant))


def _of_user(user: str) -> str:
    return f"user {user}"


def set_budgets(desk: Desk, caller: Caller, budgets: Budgets) -> Budgets:
    """All limits at once; what is left out has none any more."""
    now, before = desk.clock.instant(), read(desk, caller.tenant)
    update = {"lifted": _lifted(now[:7], before, budgets), "updated_at": now, "updated_by": caller.user}
    stamped = _since(now, before, budgets).model_copy(update=update)
    item = {"pk": f"t#{caller.tenant}", "sk": "budgets", "v": 1, **stamped.model_dump(exclude_none=True)}
    desk.tables.write(Put(desk.settings.settings_table, item))
    desk.memory.forget(("budgets", caller.tenant))
    signals.audit("ai.budget.updated", tenant=caller.tenant, user=caller.user, users=len(budgets.users))
    return stamped


def _lifted(month: str, before: Budgets, wanted: Budgets) -> dict[str, str]:
    """Of this month alone, the latest last."""
    lifted = {name: when for name, when in before.lifted.items() if when == month}
    pairs = [(THE_TENANT, before.tenant, wanted.tenant), (EACH_USER, before.each_user, wanted.each_user)]
    pairs += [(_of_user(user), limits, wanted.of(user)) for user, limits in before.users.items()]
    lifted |= {name: month for name, old, new in pairs if old.are_set and not new.are_set}
    return dict(list(lifted.items())[-MOST_LIFTED:])


def _since(now: str, before: Budgets, wanted: Budgets) -> Budgets:
    """Whose limits are new counts from now. So does everybody when somebody is an exception no more: who that was is
    not kept.
    """

    def stamped(old: Limits, new: Limits) -> Limits:
        return new.model_copy(update={"since": (old.since if old.are_set else now) if new.are_set else ""})

    users = {user: stamped(before.of(user), limits) for user, limits in wanted.users.items()}
    each = stamped(before.each_user, wanted.each_user)
    if any(user not in users and not limits.are_set for user, limits in before.users.items()):
        each = stamped(Limits(), wanted.each_user)
    tenant = stamped(before.tenant, wanted.tenant)
    return wanted.model_copy(update={"tenant": tenant, "each_user": each, "users": users})
