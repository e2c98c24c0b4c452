"""Applications and ApplicationSets of Argo CD as applications of a store. Knows nothing of Flux, and reads no disk."""

from reconciler.stages.importing.argocd.read import read_argocd

__all__ = ["read_argocd"]
