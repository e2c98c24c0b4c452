"""`reconciler demo`: a fleet of embedded clusters, the daemon, and a story; nothing is needed and nothing is left."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.options import SETTINGS, option
from reconciler.cli.printing import answer, remark

if TYPE_CHECKING:
    from reconciler.cli.demo.screen import Screen
    from reconciler.cli.demo.world import DemoWorld


@click.command(context_settings=SETTINGS)
@option("--keep", is_flag=True, help="Leave everything running at the end, until ctrl-C; keep the folder.")
def command(*, keep: bool) -> None:
    """Show what this does: three embedded clusters on loopback, the daemon, and a store that changes.

    Ends by itself, with exit code 0 when every promise held. Needs no Kubernetes, no network and no privileges.
    """
    folder = Path(tempfile.mkdtemp(prefix="fleet-demo-"))
    try:
        code = asyncio.run(_play(folder, keep=keep))
    finally:
        if keep:
            remark(f"left behind: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)


async def _play(folder: Path, *, keep: bool) -> int:
    """Set up, play the story, and take down; a signal ends it early. Return the exit code."""
    from reconciler.cli.demo.screen import Screen
    from reconciler.cli.demo.story import Story
    from reconciler.cli.demo.world import demo_world

    stopped = _on_signals()
    async with demo_world(folder) as world:
        environment = {"RECONCILER_KUBECONFIG": str(world.kubeconfig), "RECONCILER_JOURNAL": str(world.journal)}
        screen = Screen(environment=environment, folder=world.repository.folder)
        _introduce(screen, world)
        story = asyncio.create_task(Story(world, screen).tell())
        stopper = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait({story, stopper}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            story.cancel()
            await asyncio.wait({story})
        if stopped.is_set():
            stopper.cancel()
            remark("stopped")
            return 130
        story.result()
        _conclude(screen, world, keep=keep)
        if keep:
            await stopped.wait()
        stopper.cancel()
    return 1 if screen.broken else 0


def _on_signals() -> asyncio.Event:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped


def _introduce(screen: Screen, world: DemoWorld) -> None:
    screen.say(
        f"""Three embedded clusters run on loopback: {", ".join(world.box.names)}. A copy of the example store is a Git
        repository with a branch main. Everything lies in {world.folder}."""
    )
    screen.prompt(f"cd {screen.folder}")
    for name, value in screen.environment.items():
        screen.prompt(f"export {name}={value}")


def _conclude(screen: Screen, world: DemoWorld, *, keep: bool) -> None:
    total = screen.kept + len(screen.broken)
    if screen.broken:
        screen.say(f"{len(screen.broken)} of {total} promises did not hold:")
        for text in screen.broken:
            answer(f"  {text}")
    else:
        screen.say(f"All {total} promises held.")
    if keep:
        answer("\n" + _keep_text(screen, world))
    else:
        screen.say(
            """Next: 'reconciler demo --keep' leaves all of this running to play with, 'reconciler init' begins a store
            of your own, and docs/tutorial/first-fleet.md goes through it with real clusters."""
        )


def _keep_text(screen: Screen, world: DemoWorld) -> str:
    variables = {**_path_entry(), **screen.environment, "KUBECONFIG": str(world.kubeconfig)}
    exports = "\n".join(f"    export {name}={value}" for name, value in variables.items())
    return f"""\
Everything keeps running until ctrl-C. In another terminal:

{exports}
    cd {screen.folder}

    kubectl --context beijing get pods -A         # the embedded clusters speak kubectl
    reconciler get deployments -A                 # all clusters as one
    reconciler explain deploy/web -n shop         # why it lives where it does
    reconciler status
    $EDITOR apps/shop/web.yaml                    # change something, look at it, then let it land:
    reconciler diff
    git commit -am "Change something"

The daemon's log is {world.log}, its status page http://{world.status_page}/
"""


def _path_entry() -> dict[str, str]:
    """Return PATH with the folder of the command `reconciler`, if the shell would not find it."""
    found = Path(sys.executable).with_name("reconciler")
    return {"PATH": f"{found.parent}:$PATH"} if found.exists() and not shutil.which("reconciler") else {}
