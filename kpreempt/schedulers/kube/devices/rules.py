"""What differs between versions and gates when devices are allocated."""

from __future__ import annotations

from typing import NamedTuple

from kpreempt.schedulers.kube.devices.pools import PoolRules
from kpreempt.schedulers.kube.versions import Behaviour


class AllocatorRules(NamedTuple):
    """The features of an allocator, and what is peculiar to it.

    ``counts_every_share``: a device that is shared without any capacity counts as shared already.
    ``compares_all``: a distinct attribute is compared with those of all devices. ``fails_at_invalid_pools``: the search
    ends in an error where it comes to one. ``refuses_capacity``: an amount of capacity is an error, and not ignored,
    where devices are not to be shared; ``names_alternatives``: that error names the alternative, and not its request.
    ``names_devices``: an error of a selector names the device, and says what helps against missing keys.
    ``leaves_alternatives``: after the first of all devices, the search goes on with the first alternative.
    ``reports_limit_by_request``: too many devices are an error of the request.
    """

    pools: PoolRules
    admin_access: bool
    alternatives: bool
    binding_conditions: bool
    fractions: bool
    shares: bool
    taints: bool
    compares_all: bool
    counts_every_share: bool
    fails_at_invalid_pools: bool
    knows_distinct: bool
    names_alternatives: bool
    names_devices: bool
    leaves_alternatives: bool
    refuses_capacity: bool
    reports_limit_by_request: bool


def allocator_rules(behavior: Behaviour) -> AllocatorRules:
    """The rules under the gates that are set.

    Of the allocators that upstream has, the oldest one counts that has all features that are wanted
    (``structured/allocator.go``).
    """
    binding_conditions = behavior.dra_device_binding_conditions and behavior.dra_resource_claim_device_status
    shares = behavior.dra_consumable_capacity
    # Of 1.34 the gate of the devices' status alone is enough.
    is_newer = (
        shares
        or binding_conditions
        or (behavior.allocates_from_incomplete_pools and behavior.dra_resource_claim_device_status)
    )
    is_latest = behavior.finds_shared_counters_everywhere
    return AllocatorRules(
        pools=PoolRules(
            partitions=behavior.dra_partitionable_devices,
            uses_incomplete=behavior.allocates_from_incomplete_pools,
            refuses_compatibility_groups=is_latest,
            finds_counters_everywhere=is_latest,
        ),
        admin_access=behavior.dra_admin_access,
        alternatives=behavior.dra_prioritized_list,
        binding_conditions=binding_conditions,
        fractions=behavior.dra_fractional_capacity_range and shares,
        shares=shares,
        taints=behavior.dra_device_taints,
        compares_all=behavior.compares_attributes_of_all_devices,
        counts_every_share=is_latest,
        fails_at_invalid_pools=behavior.allocates_from_incomplete_pools,
        knows_distinct=is_newer,
        refuses_capacity=is_newer and not shares,
        names_alternatives=not behavior.allocates_from_incomplete_pools,
        names_devices=behavior.reports_devices_of_errors,
        leaves_alternatives=behavior.leaves_alternatives_of_all_devices,
        reports_limit_by_request=behavior.reports_devices_of_errors,
    )
