"""Kustomizations and HelmReleases of Flux as applications of a store."""

from reconciler.importers.flux.read import read_flux
