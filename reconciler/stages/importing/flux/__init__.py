"""Kustomizations and HelmReleases of Flux as applications of a store. Knows nothing of Argo CD, and reads no disk."""

from reconciler.stages.importing.flux.read import read_flux

__all__ = ["read_flux"]
