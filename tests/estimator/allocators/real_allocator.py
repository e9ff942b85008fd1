"""PyTorch's own caching allocator, run without a card.

    events, settings -> what libc10_cuda.so does

The wheel's `libc10_cuda.so` is loaded against a CUDA library of ours (`fake_cuda/`) that only
counts bytes. Every decision is PyTorch's; needs the CUDA build of torch and a C++ compiler.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

SOURCES = Path(__file__).parent / "fake_cuda"
HEADERS = ("nvidia/cu13/include", "triton/backends/nvidia/include")


@dataclass(frozen=True, slots=True, kw_only=True)
class RealAllocator:
    """A program that holds one allocator and answers commands about it."""

    program: Path
    cuda: Path

    def ask(self, commands: Sequence[str], environment: Mapping[str, str]) -> list[str] | None:
        """Return one answer a command of a fresh process; None if PyTorch refused to go on."""
        done = subprocess.run(
            [self.program],
            input="\n".join(commands) + "\n",
            env={"LD_PRELOAD": str(self.cuda), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines() if done.returncode == 0 else None


def missing() -> str | None:
    """Return what is missing to build the program, None if nothing is."""
    torch = torch_folder()
    if torch is None or not (torch / "lib/libc10_cuda.so").exists():
        return "needs the CUDA build of torch (no card)"
    if b"libcudart.so.13" not in (torch / "lib/libc10_cuda.so").read_bytes():
        return "the fake driver speaks CUDA 13 only"
    if not shutil.which("g++") or not shutil.which("gcc"):
        return "needs a C++ compiler"
    if not headers():
        return "needs cuda_runtime_api.h of some wheel"
    return None


def torch_folder() -> Path | None:
    """Return where torch is installed, without importing it."""
    spec = find_spec("torch")
    return Path(spec.origin).parent if spec and spec.origin else None


def headers() -> list[Path]:
    """Return folders of wheels with whole CUDA headers."""
    torch = torch_folder()
    assert torch is not None
    folders = [torch.parent / each for each in HEADERS]
    return [folder for folder in folders if (folder / "crt/host_defines.h").exists()]


def build(folder: Path) -> RealAllocator:
    """Return the program, built in *folder*."""
    torch = torch_folder()
    assert torch is not None
    cuda, program = folder / "libcudart.so.13", folder / "driver"
    versions = folder / "versions"
    versions.write_text("libcudart.so.13 { global: *; };\n")
    compile_cuda = ("gcc", "-shared", "-fPIC", "-o", cuda, "-Wl,-soname,libcudart.so.13")
    subprocess.run(
        (*compile_cuda, f"-Wl,--version-script={versions}", SOURCES / "fake_cuda.c"), check=True
    )
    compile_driver = ("g++", "-std=c++20", f"-I{torch}/include", f"-I{headers()[0]}")
    libraries = (cuda, f"-L{torch}/lib", "-lc10_cuda", "-lc10", f"-Wl,-rpath,{folder}:{torch}/lib")
    subprocess.run((*compile_driver, "-o", program, SOURCES / "driver.cpp", *libraries), check=True)
    return RealAllocator(program=program, cuda=cuda)
