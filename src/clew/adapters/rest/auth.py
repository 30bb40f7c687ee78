"""Authentication of callers: RS256 tokens, the key that signs them, and the credential that issues them."""

from __future__ import annotations

import hmac
import logging
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from clew.access import Principal, check_principal
from clew.clock import Clock
from clew.config import check_own_files
from clew.errors import ConfigError, InvalidInput, NotAuthenticated, ReadOnly, SourceError
from clew.files import write_once
from clew.trail.ownership import MADE
from clew.trust import Trust, Wish, digest_parts, real_folder

if TYPE_CHECKING:
    from jwt.types import Options

ISSUER = "clew"
CALLS, STREAM = "clew", "clew-stream"
"""Audiences: a token for calls is refused as a stream token, and the other way round."""

STREAM_SECONDS = 60
_REMEMBERED = 4_096

MIN_CREDENTIAL = 16
GIT_SECONDS = 10.0
KEY_FILE, CREDENTIAL_FILE = "keys/private.pem", "credential"
KIND = "keys"
_log = logging.getLogger(__name__)


class IssuedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A signed token. Send it as `Authorization: Bearer`, a stream token as `?token=`."""

    token: str
    token_type: str = "Bearer"
    expires_in: int
    expires_at: datetime


class VerifiedCaller(msgspec.Struct, frozen=True, kw_only=True):
    """A principal with a verified token, and the time at which the token expires."""

    principal: Principal
    until: datetime


_Seconds = Annotated[int, Meta(ge=0, le=250_000_000_000)]


class _Claims(msgspec.Struct, frozen=True, kw_only=True):
    owner_id: str
    agent_id: str
    roles: frozenset[str]
    scopes: frozenset[str] = frozenset()
    session: str | None = None
    exp: _Seconds
    until: _Seconds | None = None


class Keys:
    """Issues and verifies tokens with the key pair of one folder."""

    def __init__(self, pem: bytes, credential: str, clock: Clock, lifetime: timedelta) -> None:
        self._pem = pem
        self._credential = credential.encode()
        self._clock = clock
        self._lifetime = lifetime
        self._verified: OrderedDict[bytes, VerifiedCaller] = OrderedDict()

    def check_credential(self, given: str) -> None:
        """Raise NotAuthenticated unless this is the credential. The comparison takes constant time."""
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._credential):
            raise NotAuthenticated(
                "the credential is missing or wrong",
                hint="Send the text of the file `credential` in the .clew folder as X-Clew-Credential",
            )

    def issue(self, principal: Principal) -> IssuedToken:
        """A token for calls. Raises InvalidInput when the principal is not well-formed."""
        return self._sign(check_principal(principal), CALLS, self._lifetime)

    def issue_for_stream(self, caller: VerifiedCaller) -> IssuedToken:
        """A token that opens an event stream within a minute. The stream ends when the caller's own token expires."""
        until = int(caller.until.timestamp())
        return self._sign(caller.principal, STREAM, timedelta(seconds=STREAM_SECONDS), until=until)

    def verify(self, token: str) -> VerifiedCaller:
        """The caller of a token for calls. Raises NotAuthenticated. Verified tokens are cached."""
        return self.verify_header(b"Bearer " + token.encode("latin-1", "replace"))

    def verify_header(self, header: bytes) -> VerifiedCaller:
        """Like `verify`, for an Authorization header with a bearer token. Verified headers are cached."""
        known = self._verified.get(header)
        if known is None:
            token = bearer_token(header)
            known = self._verify(token.decode("latin-1"), CALLS)
            if len(header) == len(b"Bearer ") + len(token):  # one header for each token: the cache stays small
                self._remember(header, known)
        if known.until <= self._clock.now():
            self._verified.pop(header, None)
            raise NotAuthenticated("the token has expired")
        return known

    def verify_for_stream(self, token: str) -> VerifiedCaller:
        """The caller of a stream token. Raises NotAuthenticated, for a token for calls as well."""
        return self._verify(token, STREAM)

    def remaining(self, caller: VerifiedCaller) -> timedelta:
        """The time until a caller's token expires."""
        return caller.until - self._clock.now()

    def _sign(self, by: Principal, audience: str, lifetime: timedelta, until: int | None = None) -> IssuedToken:
        import jwt  # loads cryptography, a tenth of a second that a start without tokens does not pay

        now = self._clock.now()
        expires = (now + lifetime).replace(microsecond=0)
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": audience,
            "iat": int(now.timestamp()),
            "exp": int(expires.timestamp()),
            "owner_id": by.owner_id,
            "agent_id": by.agent_id,
            "roles": sorted(by.roles),
            "scopes": sorted(by.scopes),
        }
        claims |= {"session": by.session} if by.session is not None else {}
        claims |= {"until": until} if until is not None else {}
        token = jwt.encode(claims, self._private_key, "RS256")
        return IssuedToken(token=token, expires_in=int(lifetime.total_seconds()), expires_at=expires)

    def _verify(self, token: str, audience: str) -> VerifiedCaller:
        import jwt  # see _sign

        try:
            # The time is checked below, against the clock that was passed in.
            checks: Options = {"require": ["exp"], "verify_exp": False, "verify_iat": False}
            decoded = jwt.decode(token, self._public_key, ["RS256"], audience=audience, issuer=ISSUER, options=checks)
            claims = msgspec.convert(decoded, _Claims)
            expires, until = (_moment(at) for at in (claims.exp, claims.until or claims.exp))
            principal = _principal(claims)
        except (jwt.PyJWTError, msgspec.ValidationError, InvalidInput, ValueError):
            raise NotAuthenticated("the token is not valid here") from None
        if expires <= self._clock.now():
            raise NotAuthenticated("the token has expired")
        return VerifiedCaller(principal=principal, until=until)

    def _remember(self, header: bytes, caller: VerifiedCaller) -> VerifiedCaller:
        self._verified[header] = caller
        if len(self._verified) > _REMEMBERED:
            self._verified.popitem(last=False)
        return caller

    @cached_property
    def _private_key(self) -> Any:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # see _sign

        try:
            return load_pem_private_key(self._pem, password=None)
        except ValueError:
            raise ConfigError("keys/private.pem is not a key; remove it, and the next start makes one") from None

    @cached_property
    def _public_key(self) -> Any:
        return self._private_key.public_key()


def open_keys(folder: Path, clock: Clock, lifetime: timedelta = timedelta(hours=1)) -> Keys:
    """The keys and the credential of a folder, made on first use and readable by its owner only.

    Processes that start at the same moment agree on one key pair. Raises ConfigError for files that this user neither
    created nor agreed to, because their creator could act as the user. Raises ReadOnly if one is a link.
    """
    check_own_files(folder)
    pem = _read_or_make(folder, KEY_FILE, _new_private_key)
    credential = _read_or_make(folder, CREDENTIAL_FILE, _new_credential)
    text = credential.decode("utf-8", "replace").strip()
    if len(text) < MIN_CREDENTIAL:
        raise ConfigError(f"{folder / 'credential'} is empty or shorter than {MIN_CREDENTIAL} characters: delete it")
    return Keys(pem, text, clock, lifetime)


def key_wishes(folder: Path) -> list[Wish]:
    """The key and the credential that a folder has, as wishes for the user's consent."""
    names = [name for name in (KEY_FILE, CREDENTIAL_FILE) if (folder / name).is_file()]
    return [_key_wish(folder, name, (folder / name).read_bytes()) for name in names]


def tracked_keys(folder: Path) -> list[str]:
    """The key and the credential, if git tracks them. A deleted file counts too: a new one would be committed in spite
    of `.gitignore`."""
    from clew.knowledge.git.run import run_git  # only making keys and `clew doctor` ask git

    try:
        tracked = run_git(folder, ["ls-files", "-z", "--", KEY_FILE, CREDENTIAL_FILE], timeout=GIT_SECONDS)
    except SourceError:  # no git, no repository
        return []
    return sorted({os.fsdecode(each) for each in tracked.split(b"\0") if each})


def _key_wish(folder: Path, name: str, content: bytes) -> Wish:
    return Wish(
        folder=real_folder(folder.absolute().parent),
        kind=KIND,
        name=name,
        digest=digest_parts([content]),
        summary="a file that you did not make: its author can get tokens of this server and act as you",
    )


def is_bearer(header: bytes) -> bool:
    """Whether an Authorization header has a bearer token."""
    return header[:7].lower() == b"bearer "


def bearer_token(header: bytes) -> bytes:
    """The token of an Authorization header, empty if it has none."""
    return header[7:].strip() if is_bearer(header) else b""


def _principal(claims: _Claims) -> Principal:
    return check_principal(
        Principal(
            owner_id=claims.owner_id,
            agent_id=claims.agent_id,
            roles=claims.roles,
            scopes=claims.scopes,
            session=claims.session,
        )
    )


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _new_private_key() -> bytes:
    from cryptography.hazmat.primitives import serialization  # see Keys._sign
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def _new_credential() -> bytes:
    return secrets.token_urlsafe(32).encode() + b"\n"


def _read_or_make(folder: Path, name: str, make: Callable[[], bytes]) -> bytes:
    """The content of a file that this user made or agreed to. A missing file is made, and remembered as the user's."""
    path, trust = folder / name, Trust.open()
    if not os.path.lexists(path):
        with ExitStack() as stack:
            try:
                stack.enter_context(trust.making())
                if not os.path.lexists(path):
                    _refuse_tracked(folder, name)
                    content = make()
                    trust.grant([msgspec.structs.replace(_key_wish(folder, name, content), summary=MADE)])
                    return _write(path, content)
            except ReadOnly as error:
                _log.warning("you made %s, but it will need your consent the next time: %s", name, error)
                return _write(path, make())
    content = path.read_bytes() if path.is_file() else b""
    if not trust.holds_once_made(_key_wish(folder, name, content)):
        refused = ConfigError(f"{path} was not made by you: its author could act as you")
        removal = "Delete it (`git rm` if git tracks it), and the next start makes a new one"
        refused.hint = f"{removal}; or agree to it: `clew trust {name}`"
        raise refused
    return content


def _refuse_tracked(folder: Path, name: str) -> None:
    if name in tracked_keys(folder):
        refused = ConfigError(f"git tracks {folder / name}: a new one would get into the next commit")
        refused.hint = f"Remove it from git: git rm --cached {folder / name}"
        raise refused


def _write(path: Path, content: bytes) -> bytes:
    """Write a file that appears whole or not at all. If another process writes it first, that content is used."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_once(path, content)
    return path.read_bytes()
