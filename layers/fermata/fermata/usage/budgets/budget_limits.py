"""Budgets: what a tenant, and each of its users, may spend in a day and in a month (UTC), in USD.

Limits lie in the settings, t#<tenant> budgets. Where the money went is counted in accounts.py.
"""

from decimal import Decimal

from pydantic import Field

from fermata.aws import observability
from fermata.aws.dynamodb import Put
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.caller import Caller
from fermata.usage.budgets.budget_accounts import BudgetAccount

BUDGETS_CACHE_SECONDS = 5
"""Seconds after which a change counts in turns that run."""
MAX_LIFTED_LIMITS = 1_000
_TENANT_KEY, _EACH_USER_KEY = "tenant", "each"


class BudgetLimits(DomainModel):
    """None: no limit. `since`: when there came to be one, from which time on what is spent is counted (accounts.py)."""

    daily_usd: Decimal | None = None
    monthly_usd: Decimal | None = None
    since: str = ""

    @property
    def has_limits(self) -> bool:
        return self.daily_usd is not None or self.monthly_usd is not None


class Budgets(DomainModel):
    """`each_user` is for every user who has no limits of their own in `users`.

    `lifted`: whose limits were taken away, and in which month, by `tenant`, `each`, `user <id>`. Until that month is
    over, what they spend is counted as if they had some, so that nothing is forgotten when they have again.
    """

    tenant: BudgetLimits = BudgetLimits()
    each_user: BudgetLimits = BudgetLimits()
    users: dict[str, BudgetLimits] = Field(default_factory=dict)
    lifted: dict[str, str] = Field(default_factory=dict)
    updated_at: str = ""
    updated_by: str = ""

    @property
    def has_limits(self) -> bool:
        return (
            self.tenant.has_limits
            or self.each_user.has_limits
            or any(limits.has_limits for limits in self.users.values())
        )

    def list_accounts(self, tenant: str, user: str, month: str) -> list[BudgetAccount]:
        """Those that a request of this user has to fit into, and those that only count it."""
        tenants, own = self.tenant.has_limits, self.get_user_limits(user).has_limits or self.each_user.has_limits
        found = [
            (BudgetAccount.for_tenant(tenant), self.tenant, tenants or self._is_lifted(month, _TENANT_KEY)),
            (
                BudgetAccount.for_user(tenant, user),
                self.get_user_limits(user),
                own or self._is_lifted(month, _EACH_USER_KEY, _user_key(user)),
            ),
        ]
        return [
            account.with_limits(limits.daily_usd, limits.monthly_usd, limits.since)
            for account, limits, counts in found
            if counts
        ]

    def _is_lifted(self, month: str, *names: str) -> bool:
        return any(self.lifted.get(name) == month for name in names)

    def get_user_limits(self, user: str) -> BudgetLimits:
        return self.users.get(user, self.each_user)


def read_budgets(resources: Resources, tenant: str) -> Budgets:
    item = resources.tables.get_item(resources.settings.settings_table, f"t#{tenant}", "budgets")
    return Budgets.model_validate(item) if item else Budgets()


def get_budgets(resources: Resources, tenant: str, *, refresh: bool = False) -> Budgets:
    """As this process last read them, a few seconds ago at most."""
    if refresh:
        resources.cache.invalidate(("budgets", tenant))
    return resources.cache.get_or_load(
        ("budgets", tenant), BUDGETS_CACHE_SECONDS, lambda: read_budgets(resources, tenant)
    )


def _user_key(user: str) -> str:
    return f"user {user}"


def set_budgets(resources: Resources, caller: Caller, budgets: Budgets) -> Budgets:
    """All limits at once; what is left out has none any more."""
    now, before = resources.clock.now_iso(), read_budgets(resources, caller.tenant)
    update = {"lifted": _lifted_limits(now[:7], before, budgets), "updated_at": now, "updated_by": caller.user}
    stamped = _with_since(now, before, budgets).model_copy(update=update)
    item = {"pk": f"t#{caller.tenant}", "sk": "budgets", "v": 1, **stamped.model_dump(exclude_none=True)}
    resources.tables.write_items(Put(resources.settings.settings_table, item))
    resources.cache.invalidate(("budgets", caller.tenant))
    observability.log_audit_event("ai.budget.updated", tenant=caller.tenant, user=caller.user, users=len(budgets.users))
    return stamped


def _lifted_limits(month: str, before: Budgets, wanted: Budgets) -> dict[str, str]:
    """Of this month alone, the latest last."""
    lifted = {name: when for name, when in before.lifted.items() if when == month}
    pairs = [(_TENANT_KEY, before.tenant, wanted.tenant), (_EACH_USER_KEY, before.each_user, wanted.each_user)]
    pairs += [(_user_key(user), limits, wanted.get_user_limits(user)) for user, limits in before.users.items()]
    lifted |= {name: month for name, old, new in pairs if old.has_limits and not new.has_limits}
    return dict(list(lifted.items())[-MAX_LIFTED_LIMITS:])


def _with_since(now: str, before: Budgets, wanted: Budgets) -> Budgets:
    """Whose limits are new counts from now. So does everybody when somebody is an exception no more: who that was is
    not kept.
    """

    def stamped(old: BudgetLimits, new: BudgetLimits) -> BudgetLimits:
        return new.model_copy(update={"since": (old.since if old.has_limits else now) if new.has_limits else ""})

    users = {user: stamped(before.get_user_limits(user), limits) for user, limits in wanted.users.items()}
    each = stamped(before.each_user, wanted.each_user)
    if any(user not in users and not limits.has_limits for user, limits in before.users.items()):
        each = stamped(BudgetLimits(), wanted.each_user)
    tenant = stamped(before.tenant, wanted.tenant)
    return wanted.model_copy(update={"tenant": tenant, "each_user": each, "users": users})
