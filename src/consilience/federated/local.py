"""All processes of a federation on this machine: to try it, to test it, to measure it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from consilience._support.errors import InputError

APP = """\
[project]
name = "consensus"
version = "1.0.0"
description = "The consensus of parties that may not share rows"
license = "BSD-3-Clause"
dependencies = []

[tool.flwr.app]
publisher = "consilience"

[tool.flwr.app.components]
serverapp = "consilience.federated.flower.server:app"
clientapp = "consilience.federated.flower.client:app"

[tool.flwr.app.config]
parties = ""
clusters = "auto"
method = "auto"
seed = 0
timeout = 600.0
allow-absent = false
"""
_START = 180  # seconds until a process is given up


BANKS = {
    "bank_a": {"ann": "gold", "bob": "basic", "cleo": "gold", "dan": "basic"},
    "bank_b": {"ann": "spender", "bob": "saver", "eve": "saver"},
    "bank_c": {"cleo": "high", "dan": "low", "eve": "low", "fay": "high"},
}


def three_banks(folder: Path) -> dict[str, dict[str, Any]]:
    """Tables of three banks of a few customers, a key that they share, and the node config of each."""
    folder = folder.resolve()
    configs = {}
    (folder / "banks").mkdir(parents=True, exist_ok=True)
    write_private(folder / "banks" / "shared.key", secrets.token_hex(32).encode())
    for bank, people in BANKS.items():
        table = folder / "banks" / f"{bank}.csv"
        table.write_text(
            "customer,segment\n" + "".join(f"{name},{label}\n" for name, label in people.items())
        )
        configs[bank] = {
            "table": str(table),
            "id": "customer",
            "columns": "segment",
            "smallest-cluster": 1,  # of six customers every label would be held back
            "key-file": str(folder / "banks" / "shared.key"),
            "output": str(folder / "banks" / f"{bank}-answer.csv"),
        }
    return configs


class LocalFederation:
    """One superlink and a supernode for each party, on the loopback interface, ended when the block ends.

    Parameters
    ----------
    folder : path
        Where the app, Flower's own files, the certificates and the logs of all processes go.
    parties : dict of str to dict
        The node config of each party, without its name.
    secure : bool, default=False
        With TLS and authentication of the nodes, by certificates and keys made on the spot; otherwise with
        neither.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        parties: Mapping[str, Mapping[str, Any]],
        *,
        secure: bool = False,
    ) -> None:
        self.folder = Path(folder).resolve()
        self.parties = parties
        self.secure = secure
        self.logs = self.folder / "logs"
        self.address = f"127.0.0.1:{_free_port()}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._files: list[IO[bytes]] = []
        home = self.folder / "flower"
        self._environment = {**os.environ, "FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0"}
        # The commands that Flower starts itself are found on the path.
        self._environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

    def __enter__(self) -> Self:
        for folder in (self.folder / "app", self.folder / "flower", self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "app" / "pyproject.toml").write_text(APP)
        certificate = self.folder / "certificate.pem"
        how = f'root-certificates = "{certificate}"' if self.secure else "insecure = true"
        (self.folder / "flower" / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "{self.address}"\n{how}\n'
        )
        if self.secure:
            _make_certificate(certificate, self.folder / "certificate.key")
        try:
            self._start_link(certificate)
            for party, config in self.parties.items():
                self.start_node(party, config)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def run(self, n_clusters: int | str, parties: Sequence[str] | None = None, **config: Any) -> str:
        """Let Flower run the app; what it says. An error with its last sentence if it fails."""
        given = {"parties": ",".join(self.parties if parties is None else parties)}
        given |= {"clusters": str(n_clusters)}
        given |= {name.replace("_", "-"): value for name, value in config.items()}
        text = " ".join(f"{name}={json.dumps(value)}" for name, value in given.items())
        said = self._flwr("run", str(self.folder / "app"), "here", "--stream", "--run-config", text)
        (self.logs / "flwr-run.log").write_text(said)
        if "have their answers" not in said:
            raise InputError(_last_error(said) or f"the run failed; see {self.logs}.")
        return said

    def start_node(self, party: str, config: Mapping[str, Any], name: str | None = None) -> None:
        """Start the node of a party; `name` is that of its log, where a party has two."""
        name = name or party
        given = self.folder / f"{name}.toml"
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in {"party": party, **config}.items()]
        given.write_text("".join(lines))
        arguments = ["--superlink", self.address, "--node-config", str(given), "--port", str(_free_port())]
        if self.secure:
            key = self.folder / f"{name}.key"
            _make_node_key(key)
            self._flwr("supernode", "register", f"{key}.pub", "here")
            arguments += ["--root-certificates", str(self.folder / "certificate.pem")]
            arguments += ["--auth-supernode-private-key", str(key)]
        else:
            arguments += ["--insecure"]
        self._start(name, "flower-supernode", *arguments)

    def _start_link(self, certificate: Path) -> None:
        host, _, port = self.address.partition(":")
        arguments = ["--host", host, "--port", port, "--disable-runtime-dependency-installation"]
        if self.secure:
            arguments += ["--ssl-certfile", str(certificate), "--ssl-ca-certfile", str(certificate)]
            arguments += ["--ssl-keyfile", str(self.folder / "certificate.key"), "--enable-supernode-auth"]
        else:
            arguments += ["--insecure"]
        process = self._start("superlink", "flower-superlink", *arguments)
        end = time.monotonic() + _START
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    raise InputError(
                        "the superlink does not answer.", hint=f"see {self.logs / 'superlink.log'}"
                    ) from None
                time.sleep(0.1)

    def _start(self, name: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = open(self.logs / f"{name}.log", "wb")  # noqa: SIM115 - closed when all processes have ended
        self._files.append(log)
        process = subprocess.Popen(  # noqa: S603 - our own arguments
            [str(Path(sys.executable).parent / program), *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=self._environment,
            cwd=self.folder,
            start_new_session=True,  # what it starts ends with it
        )
        self._processes.append(process)
        return process

    def _flwr(self, *arguments: str) -> str:
        done = subprocess.run(  # noqa: S603 - our own arguments
            [str(Path(sys.executable).parent / "flwr"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            env=self._environment,
            cwd=self.folder,
        )
        return done.stdout

    def stop(self) -> None:
        """End all processes that were started here, and theirs."""
        for process in reversed(self._processes):
            _signal(process, signal.SIGTERM)
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            _signal(process, signal.SIGKILL)
            process.wait()
        for file in self._files:
            file.close()
        self._processes, self._files = [], []


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To a process and to those that it started: each leads a group of its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _last_error(said: str) -> str:
    """The sentence of the exception that ended a run."""
    found = [line for line in said.splitlines() if "Error: " in line and "Hint: " in line]
    return found[-1].partition("Error: ")[2].strip() if found else ""


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _make_certificate(path: Path, key_path: Path) -> None:
    """A certificate of 127.0.0.1 for a day that vouches for itself."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(key_path, key)


def _make_node_key(path: Path) -> None:
    """The two keys of a node, as `ssh-keygen -t ecdsa -b 384` makes them."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP384R1())
    _write_key(path, key, openssh=True)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    Path(f"{path}.pub").write_bytes(public + b"\n")


def _write_key(path: Path, key: Any, *, openssh: bool = False) -> None:
    from cryptography.hazmat.primitives import serialization

    form = serialization.PrivateFormat.OpenSSH if openssh else serialization.PrivateFormat.PKCS8
    write_private(path, key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


def write_private(path: Path, text: bytes) -> None:
    """A file that only its owner can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(text)
