"""Store budget limits: what a tenant and each of its users may spend in a day and in a month (UTC), in USD.

The settings table holds them as t#<tenant> budgets. The accounts (budget_accounts.py) count the spending.
"""

from decimal import Decimal

from pydantic import Field

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, ItemKey, Put, ReadItem
from fermata.aws.resources import Resources
from fermata.domain.base import StoredModel, StoredNames
from fermata.domain.caller import Caller
from fermata.domain.errors import ServiceUnavailable
from fermata.usage.budgets.budget_accounts import BudgetAccount

BUDGETS_CACHE_SECONDS = 5
"""A change takes effect in running turns after this time."""
MAX_LIFTED_LIMITS = 1_000
MAX_SET_ATTEMPTS = 10
_TENANT_KEY = "tenant"
_EACH_USER_KEY = "each"


class BudgetLimits(StoredModel):
    """Limits of one owner. None means no limit. `since` is the ISO instant from which spending counts against them."""

    daily_usd: Decimal | None = None
    monthly_usd: Decimal | None = None
    since: str = ""

    @property
    def has_limits(self) -> bool:
        """Whether a day or a month has a limit."""
        return self.daily_usd is not None or self.monthly_usd is not None


class Budgets(StoredModel, alias_generator=StoredNames({"lifted_month_by_owner": "lifted"}), defer_build=False):
    """All limits of a tenant.

    Attributes:
        each_user: Limits of every user without an entry in `users`.
        lifted_month_by_owner: The month in which limits were removed, by owner (`tenant`, `each` or `user <id>`).
            Spending of these owners is counted until that month ends, so that limits set again find it (decision 0088).
        version: Increases with each change; 0 when nothing is stored, or budgets from before decision 0143.
    """

    tenant: BudgetLimits = BudgetLimits()
    each_user: BudgetLimits = BudgetLimits()
    users: dict[str, BudgetLimits] = Field(default_factory=dict)
    lifted_month_by_owner: dict[str, str] = Field(default_factory=dict)
    updated_at: str = ""
    updated_by: str = ""
    version: int = 0

    @property
    def has_limits(self) -> bool:
        """Whether the tenant, each user or any one user has a limit."""
        return any(limits.has_limits for limits in (self.tenant, self.each_user, *self.users.values()))

    def to_row(self, tenant: str) -> Item:
        """Return the item of the settings table."""
        return {"pk": f"t#{tenant}", "sk": "budgets", "v": 1, **self.to_stored()}

    def list_accounts(self, tenant: str, user: str, month: str) -> list[BudgetAccount]:
        """Return the accounts that count a user's request: those with limits, and those whose limits were lifted.

        Args:
            tenant: The tenant's name.
            user: The user who makes the request.
            month: The current month in UTC, as `2026-01`.
        """
        accounts: list[BudgetAccount] = []
        if self.tenant.has_limits or self._is_lifted(month, _TENANT_KEY):
            accounts.append(_with_limits(BudgetAccount.for_tenant(tenant), self.tenant))
        user_limits = self.get_user_limits(user)
        # A user whose own entry has no limits is counted like all others (decision 0088).
        has_limits = user_limits.has_limits or self.each_user.has_limits
        if has_limits or self._is_lifted(month, _EACH_USER_KEY, _user_key(user)):
            accounts.append(_with_limits(BudgetAccount.for_user(tenant, user), user_limits))
        return accounts

    def _is_lifted(self, month: str, *owners: str) -> bool:
        return any(self.lifted_month_by_owner.get(owner) == month for owner in owners)

    def get_user_limits(self, user: str) -> BudgetLimits:
        """Return the limits of a user's own entry, or else those of every user."""
        return self.users.get(user, self.each_user)


def _with_limits(account: BudgetAccount, limits: BudgetLimits) -> BudgetAccount:
    return account.with_limits(limits.daily_usd, limits.monthly_usd, limits.since)


def build_budgets_key(resources: Resources, tenant: str) -> ItemKey:
    """Return the key of the row with a tenant's budgets."""
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", "budgets")


def read_budgets(resources: Resources, tenant: str, read_item: ReadItem | None = None) -> Budgets:
    item = (read_item or resources.tables.get_item_by_key)(build_budgets_key(resources, tenant))
    return Budgets.from_stored(item) if item else Budgets()


def get_budgets(
    resources: Resources, tenant: str, *, refresh: bool = False, read_item: ReadItem | None = None
) -> Budgets:
    """Return a tenant's budgets.

    Args:
        tenant: The tenant's name.
        refresh: Whether to read them now. Otherwise they may be BUDGETS_CACHE_SECONDS old.
        read_item: Reads their row; by default with a request.
    """
    if refresh:
        resources.cache.invalidate(("budgets", tenant))
    return resources.cache.get_or_load(
        ("budgets", tenant), BUDGETS_CACHE_SECONDS, lambda: read_budgets(resources, tenant, read_item)
    )


def _user_key(user: str) -> str:
    return f"user {user}"


def set_budgets(resources: Resources, caller: Caller, budgets: Budgets) -> Budgets:
    """Replace all limits of the caller's tenant; an owner that `budgets` leaves out has no limits afterwards.

    Args:
        caller: The administrator who sets them; recorded as `updated_by`.
        budgets: The new limits in USD. Its other members are ignored.

    Returns:
        The budgets as stored, with `lifted_month_by_owner`, `since`, `updated_at`, `updated_by` and `version`.

    Raises:
        ServiceUnavailable: Other requests changed the budgets in each of MAX_SET_ATTEMPTS attempts.
    """
    for _ in range(MAX_SET_ATTEMPTS):
        stored = _replace_budgets(resources, caller, read_budgets(resources, caller.tenant), budgets)
        if stored:
            resources.cache.invalidate(("budgets", caller.tenant))
            observability.log_audit_event(
                "ai.budget.updated", tenant=caller.tenant, user=caller.user, users=len(budgets.users)
            )
            return stored
    raise ServiceUnavailable("Other requests are changing the budgets. Send the same request again.", retry_after=1)


def _replace_budgets(resources: Resources, caller: Caller, before: Budgets, budgets: Budgets) -> Budgets | None:
    """Store budgets in place of those that were read. Return None when they have changed since (decision 0143)."""
    now = resources.clock.now_iso()
    lifted = _lifted_limits(now[:7], before, budgets)
    update = {
        "lifted_month_by_owner": lifted,
        "updated_at": now,
        "updated_by": caller.user,
        "version": before.version + 1,
    }
    stored = _with_since(now, before, budgets).model_copy(update=update)
    item = stored.to_row(caller.tenant)
    condition = "#version = :was" if before.version else "attribute_not_exists(#version)"
    values = {":was": before.version} if before.version else {}
    table = resources.settings.settings_table
    try:
        resources.tables.write_items(
            Put(table, item, condition=condition, values=values, names={"#version": "version"})
        )
    except ConditionFailed as error:
        is_own = error.item is not None and Budgets.from_stored(error.item) == stored
        return stored if is_own else None
    return stored


def _lifted_limits(month: str, before: Budgets, after: Budgets) -> dict[str, str]:
    """Return the owners whose limits were lifted in this month, the latest last."""
    lifted = {owner: lifted_in for owner, lifted_in in before.lifted_month_by_owner.items() if lifted_in == month}
    changes = [(_TENANT_KEY, before.tenant, after.tenant), (_EACH_USER_KEY, before.each_user, after.each_user)]
    changes += [(_user_key(user), limits, after.get_user_limits(user)) for user, limits in before.users.items()]
    lifted |= {owner: month for owner, old, new in changes if old.has_limits and not new.has_limits}
    return dict(list(lifted.items())[-MAX_LIFTED_LIMITS:])


def _with_since(now: str, before: Budgets, after: Budgets) -> Budgets:
    """Set `since` of each limit: now where the owner had no limits before, otherwise unchanged.

    When a user's entry without limits disappears, `each_user` starts now: its accounts do not record which user that
    was, and the user's spending was not limited meanwhile.
    """

    def with_since(old: BudgetLimits, new: BudgetLimits) -> BudgetLimits:
        since = old.since if old.has_limits else now
        return new.model_copy(update={"since": since if new.has_limits else ""})

    users = {user: with_since(before.get_user_limits(user), limits) for user, limits in after.users.items()}
    each_user = with_since(before.each_user, after.each_user)
    if any(user not in users and not limits.has_limits for user, limits in before.users.items()):
        each_user = with_since(BudgetLimits(), after.each_user)
    tenant = with_since(before.tenant, after.tenant)
    return after.model_copy(update={"tenant": tenant, "each_user": each_user, "users": users})
