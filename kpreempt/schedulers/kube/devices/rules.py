"""What differs between versions and gates when devices are allocated."""

from __future__ import annotations

from typing import NamedTuple

from kpreempt.schedulers.kube.devices.pools import PoolRules
from kpreempt.schedulers.kube.versions import Behaviour


class AllocatorRules(NamedTuple):
    """The features of an allocator, and what is peculiar to it.

    ``counts_every_share``: a device that is shared without any capacity counts as shared already.
    ``compares_all``: a distinct attribute is compared with those of all devices. ``fails_at_invalid_pools``: the search
    ends in an error where it comes to one. ``names_devices``: an error of a selector names the device.
    ``tells_limit_by_request``: too many devices are an error of the request.
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
    names_devices: bool
    tells_limit_by_request: bool


def allocator_rules(behaviour: Behaviour) -> AllocatorRules:
    """The rules under the gates that are set.

    Of the allocators that upstream has, the oldest one counts that has all features that are wanted
    (``structured/allocator.go``).
    """
    binding_conditions = behaviour.dra_device_binding_conditions and behaviour.dra_resource_claim_device_status
    shares = behaviour.dra_consumable_capacity
    is_latest = behaviour.finds_shared_counters_everywhere
    return AllocatorRules(
        pools=PoolRules(
            partitions=behaviour.dra_partitionable_devices,
            uses_incomplete=behaviour.allocates_from_incomplete_pools,
            refuses_compatibility_groups=is_latest,
            finds_counters_everywhere=is_latest,
        ),
        admin_access=behaviour.dra_admin_access,
        alternatives=behaviour.dra_prioritized_list,
        binding_conditions=binding_conditions,
        fractions=behaviour.dra_fractional_capacity_range and shares,
        shares=shares,
        taints=behaviour.dra_device_taints,
        compares_all=behaviour.compares_attributes_of_all_devices,
        counts_every_share=is_latest,
        fails_at_invalid_pools=behaviour.allocates_from_incomplete_pools,
        knows_distinct=binding_conditions or shares,
        names_devices=behaviour.tells_devices_of_errors,
        tells_limit_by_request=behaviour.tells_devices_of_errors,
    )
