"""Certificates that a test signs itself, for servers on loopback addresses."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


def write_certificate(folder: Path, host: str, *, is_expired: bool = False) -> Path:
    """Write a certificate and its key into one file, which also serves as the authority that signed it.

    Args:
        folder: Of the file.
        host: The name or the address that it is for.
        is_expired: Whether it ended yesterday.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    end = datetime.datetime.now(datetime.UTC) + (-DAY if is_expired else DAY)
    try:
        alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        alternative = x509.DNSName(host)
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(end - 3 * DAY)
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(builder.public_bytes(serialization.Encoding.PEM) + pem)
    return file
