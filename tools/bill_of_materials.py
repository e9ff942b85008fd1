"""`make sbom`: what an image installs, as CycloneDX documents, one a value of EXTRA.

    requirements/NAME.txt -> build/sbom/NAME.cdx.json

From the locked requirements alone: nothing is resolved, asked or installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path("requirements")
BUILD = Path("build/sbom")
IMAGES = ("base", "torch", "tensorflow", "jax", "frameworks")
"""The values of EXTRA in the Dockerfile."""


def write(requirements: Path, into: Path) -> Path:
    """Write what *requirements* pins to a file in *into*, the same for the same pins; return it.

    Raises:
        CalledProcessError: if cyclonedx-py does not take the file.
    """
    into.mkdir(parents=True, exist_ok=True)
    path = into / f"{requirements.stem}.cdx.json"
    module = (sys.executable, "-m", "cyclonedx_py", "requirements", str(requirements))
    subprocess.run(
        [*module, "--output-reproducible", "--of", "JSON", "--output-file", str(path)],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return path


def main() -> None:
    """Write one document an image."""
    for name in IMAGES:
        print(f"sbom: {write(REQUIREMENTS / f'{name}.txt', BUILD)}")


if __name__ == "__main__":
    main()
