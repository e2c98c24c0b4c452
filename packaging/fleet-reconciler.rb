# For a tap. The dependencies are those of requirements.lock, by their digests.
class FleetReconciler < Formula
  include Language::Python::Virtualenv

  desc "@summary@"
  homepage "@home@"
  url "@home@/releases/download/v@version@/fleet_reconciler-@version@.tar.gz"
  sha256 "@sdist_sha256@"
  license "@license@"

  depends_on "python@3.13"

  def install
    # Apart from the packages of Homebrew's Python, of which pip would take one without looking at its digest.
    venv = virtualenv_create(libexec, "python3.13", system_site_packages: false)
    system "python3.13", "-m", "pip", "--python=#{libexec}/bin/python", "install", "--require-hashes",
           "--only-binary", ":all:", "-r", "requirements.lock"
    venv.pip_install_and_link buildpath
    generate_completions_from_executable(bin/"reconciler", "completion", shells: [:bash, :zsh, :fish])
  end

  test do
    system bin/"reconciler", "init", testpath/"store", "--name", "shop"
    system bin/"reconciler", "validate", testpath/"store"
  end
end
