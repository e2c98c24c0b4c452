// The image for all architectures: `docker buildx bake --push`, with IMAGE (registry.example.com/platform/fleet-reconciler) and
// VERSION in the environment. The git and sops of the image: Dockerfile. Who built it, and of what, is attested beside it.
variable "IMAGE" { default = "fleet-reconciler" }
variable "VERSION" { default = "dev" }
variable "BASE" { default = "python:3.12-slim" }
variable "GO" { default = "golang:1.26" }
variable "SOURCE_DATE_EPOCH" { default = "0" }
// 0.2 of 0.2.1. What is no release, as dev and 0.3.0-rc.1, moves no tag that others follow.
variable "MINOR" { default = join("", flatten(regexall("^([0-9]+\\.[0-9]+)\\.[0-9]+$", VERSION))) }

group "default" { targets = ["image"] }

target "image" {
  context    = "."
  platforms  = ["linux/amd64", "linux/arm64"]
  args       = { BASE = BASE, GO = GO, SOURCE_DATE_EPOCH = SOURCE_DATE_EPOCH }
  tags       = concat(["${IMAGE}:${VERSION}"], MINOR == "" ? [] : ["${IMAGE}:${MINOR}", "${IMAGE}:latest"])
  labels     = { "org.opencontainers.image.version" = VERSION }
  attest     = ["type=provenance,mode=max", "type=sbom"]
}
