"""Access of a fleet by the profiles of a management cluster, kept for as long as the process lives.

The store names the members. A profile that vanishes, or an unreachable management cluster, changes nothing: the last
known access stays in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from reconciler.adapters.kube.errors import clean
from reconciler.adapters.kube.kubeconfig import MemberConfig, load_members
from reconciler.adapters.kube.profiles.listing import ProfileKey, inventory_place, read_profiles
from reconciler.adapters.kube.profiles.providers import Providers, read_providers
from reconciler.adapters.kube.profiles.reach import config_of
from reconciler.errors import ConfigurationError, MemberClusterError
from reconciler.model.cluster import Cluster
from reconciler.model.tree import JsonObject, dig

INTERVAL_S = 60.0
"""The interval at which a service reads the profiles."""


class LiveAccess:
    """The last known profiles."""

    def __init__(self, place: str, provider_file: Path, kubeconfig: Path | None) -> None:
        """Nothing is asked yet.

        Raises:
            ConfigurationError: the provider file is unusable, or the kubeconfig lacks the management cluster.
        """
        self._text, self._file, self._kubeconfig = place, provider_file, kubeconfig
        self._providers: Providers = read_providers(provider_file)
        inventory_place(place, kubeconfig)
        self._known: dict[ProfileKey, JsonObject] = {}
        self._present: frozenset[ProfileKey] = frozenset()
        self.fault: str = "they were not read yet"
        """The reason why the profiles could not be read the last time; empty: they were."""

    async def refresh(self, fleet: str) -> bool:
        """Read provider file and profiles again; return whether anything changed. It raises nothing.

        `fleet`: the name for the audit log.
        """
        before = (self._providers, self._known, self._present)
        try:
            self._providers = read_providers(self._file)
            bodies = await read_profiles(inventory_place(self._text, self._kubeconfig), fleet)
        except MemberClusterError as error:
            self.fault = clean(error.message)
        except ConfigurationError as error:
            self.fault = str(error)
        else:
            self.fault = ""
            told = {_key(body): _of_access(body) for body in bodies}
            self._present = frozenset(told)
            self._known = {**self._known, **told}
        return (self._providers, self._known, self._present) != before

    @property
    def gone(self) -> tuple[ProfileKey, ...]:
        """Profiles that were there and are not any more, whose access is kept."""
        return tuple(sorted(self._known.keys() - self._present))

    def configs(self, clusters: Iterable[Cluster]) -> Mapping[str, MemberConfig | ConfigurationError]:
        """Return the access of each cluster, by name, or its error.

        Documents of kind ClusterProfile use the live profile, unless they name a context; all others use the
        kubeconfig.

        Raises:
            ConfigurationError: the kubeconfig cannot be read at all.
        """
        given = list(clusters)
        by_profile = [cluster for cluster in given if cluster.namespace and not cluster.context]
        others = [cluster for cluster in given if not cluster.namespace or cluster.context]
        found = dict(load_members(self._kubeconfig, others)) if others else {}
        for cluster in by_profile:
            try:
                found[cluster.name] = self._config(cluster)
            except ConfigurationError as error:
                found[cluster.name] = error
        return found

    def _config(self, cluster: Cluster) -> MemberConfig:
        key = (cluster.namespace, cluster.name)
        source = f"the ClusterProfile {'/'.join(key)} of {self._text}"
        profile = self._known.get(key)
        if profile is None:
            why = (
                f"the profiles of {self._text} cannot be read: {self.fault}" if self.fault else f"{source} is not there"
            )
            raise ConfigurationError(f"cluster {cluster.name}: {why}")
        return config_of(cluster.name, profile, self._providers, source)

    def remarks(self, cluster: Cluster) -> tuple[str, ...]:
        """Return remarks about a cluster. None of them says that it is gone: only the store does."""
        key = (cluster.namespace, cluster.name)
        if not cluster.namespace or key not in self._known:
            return ()
        told = [f"the profiles of {self._text} cannot be read now ({self.fault}); the last access known is used"]
        if not self.fault:
            gone = f"its ClusterProfile is gone from {self._text}; the last access known is used"
            told = [] if key in self._present else [gone]
        conditions = dig(self._known[key], "status", "conditions")
        for one in conditions if isinstance(conditions, list) else ():
            if isinstance(one, Mapping) and (one.get("type"), one.get("status")) == ("ControlPlaneHealthy", "False"):
                told.append(
                    clean(f"its profile says that the control plane is not healthy: {one.get('message') or ''}")
                )
        return tuple(told)


def _key(body: JsonObject) -> ProfileKey:
    return str(dig(body, "metadata", "namespace")), str(dig(body, "metadata", "name"))


def _of_access(body: JsonObject) -> JsonObject:
    """Return the relevant part of a profile, without times that change each minute."""
    conditions = dig(body, "status", "conditions")
    return {
        "status": {
            "accessProviders": dig(body, "status", "accessProviders"),
            "credentialProviders": dig(body, "status", "credentialProviders"),
            "conditions": [
                {key: one.get(key) for key in ("type", "status", "message")}
                for one in (conditions if isinstance(conditions, list) else ())
                if isinstance(one, Mapping)
            ],
        }
    }
