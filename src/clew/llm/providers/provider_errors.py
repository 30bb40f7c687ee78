"""Converts all errors of a provider to ModelError: one line and a hint, which never contain a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from clew.errors import ModelError, ModelFailure
from clew.llm.model_catalogue import shipped
from clew.llm.providers.provider import Provider, is_loopback
from clew.llm.providers.response_limits import MAX_RETRY_AFTER, ResponseTooLarge
from clew.llm.providers.wire_format import ProviderFailure
from clew.secrecy import MASK, mask_secrets

MAX_SAID = 200
_CHECK_ADDRESS = "Check that it runs, and base_url in config.toml"
_CHECK_NETWORK = "Check your network, and HTTPS_PROXY if a proxy is needed"
_REPHRASE = "Say it otherwise, or choose another model"
_NO_CREDIT_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
    }
)
_STATUS_OF_CODE = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "api_error": 500,
    "server_error": 500,
    "service_unavailable": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Maps error codes and types to HTTP statuses, because an error inside a stream has no status."""
_TOO_LONG_PHRASES = ("prompt is too long", "maximum context length", "reduce the length of the messages")
_NO_CREDIT_PHRASES = ("credit balance is too low",)
"""Phrases that say that no credit is left. Some servers report this, or a prompt that is too long, only in words."""


@contextmanager
def as_model_errors(provider: Provider, model: str, key: str) -> Iterator[None]:
    """Convert errors of a provider, or of the connection to it, to ModelError. Malformed answers raise many types of
    errors, so only code that calls the provider and parses answers belongs inside this context manager."""
    import httpx2  # imported by the caller already

    try:
        yield
    except ResponseTooLarge as error:
        raise _excessive(provider, error) from None
    except ProviderFailure as error:
        raise _reported(error, provider, model, key) from None
    except httpx2.TimeoutException:
        raise _late(provider) from None
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
        reason = f"the address of {provider.name} is not an address: {_line(provider.base_url, key)}"
        raise ModelError("config", reason, hint="Write base_url in config.toml as http://HOST:PORT/PATH") from None
    except (httpx2.ConnectError, httpx2.ProxyError):
        raise _unreachable(provider) from None
    except httpx2.TransportError:
        raise ModelError(
            "unreachable", f"{provider.name} closed the connection", retryable=True, hint="Try again"
        ) from None
    except (msgspec.MsgspecError, ValueError, TypeError, LookupError, AttributeError, httpx2.HTTPError):
        raise _malformed(provider, "it is incomplete, or not of the expected form") from None


def unusable_environment(provider: Provider) -> ModelError:
    """The error for an HTTP client that cannot be opened because of environment variables. Their values are not shown,
    because they may contain passwords."""
    reason = f"{provider.name} cannot be called: the proxy or certificates that the environment names cannot be used"
    hint = "Check ALL_PROXY, HTTPS_PROXY, HTTP_PROXY and SSL_CERT_FILE; a proxy must be http:// or https://"
    return ModelError("config", reason, hint=hint)


def _reported(error: ProviderFailure, provider: Provider, model: str, key: str) -> ModelError:
    """The ModelError for an error that a provider reports, chosen by its code, its message and its status."""
    codes, words = _codes(error.body), _words(error.body)
    status = error.status or next(filter(None, map(_status_of, codes)), 0)
    said = f": {_line(words, key)}" if words.strip() else ""
    if _NO_CREDIT_CODES.intersection(codes) or status == 402 or _mentions(words, _NO_CREDIT_PHRASES):
        return ModelError("rate", f"{provider.name} has no credit left{said}", hint="Add credit, or change the model")
    if "context_length_exceeded" in codes or _mentions(words, _TOO_LONG_PHRASES):
        reason = f"the prompt is too long for {model}{said}"
        return ModelError("too_long", reason, hint="Send less, or choose a model with a larger context")
    if status in (401, 403) or "invalid_api_key" in codes:
        return ModelError("auth", f"{provider.name} does not accept the key{said}", hint=_key_hint(provider))
    if status == 404 or "model_not_found" in codes:
        reason = f"{provider.name} has no model {model!r}{said}"
        return ModelError("config", reason, hint="Check [models] and base_url in config.toml")
    if status == 408:
        return _later("timeout", f"{provider.name} gave up waiting for the request{said}", error)
    if status == 429:
        return _later("rate", f"{provider.name} is asked too often{said}", error)
    if status >= 500 or not status:
        return _later("server", f"{provider.name} failed{said}", error)
    if status in (400, 422):
        return ModelError("refused", f"{provider.name} refused the request{said}", hint=_REPHRASE)
    if status < 400:
        return _malformed(provider, f"it has the status {status}")
    reason = f"{provider.name} answered with status {status}{said}"
    return ModelError("refused", reason, hint=_CHECK_ADDRESS)


def _later(kind: ModelFailure, reason: str, error: ProviderFailure) -> ModelError:
    asked = _seconds(error.retry_after)
    after = None if asked is None else min(asked, MAX_RETRY_AFTER)
    return ModelError(kind, reason, retryable=True, retry_after=after, hint=_wait(asked))


def _seconds(text: str) -> float | None:
    """The seconds of a Retry-After header, which may be a date; None for anything else."""
    try:
        found = float(text)
    except ValueError:
        try:
            found = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return found if found >= 0 else None


def _wait(seconds: float | None) -> str:
    if seconds is None:
        return "Try again later"
    if seconds > MAX_RETRY_AFTER:
        return "Try again in more than an hour"
    return f"Try again in {seconds:.3g} seconds" if seconds < 120 else f"Try again in {round(seconds / 60)} minutes"


def _malformed(provider: Provider, said: str) -> ModelError:
    reason = f"{provider.name} sent an answer that cannot be read: {said}"
    return ModelError("malformed", reason, retryable=True, hint="Try again; if the error stays, check base_url")


def _excessive(provider: Provider, excess: ResponseTooLarge) -> ModelError:
    """The error for an answer that is too large. It is not retryable, because a retry would give the same."""
    reason = f"{provider.name} answered more than can be taken: {excess}"
    return ModelError("malformed", reason, hint="Ask for less at once, or check base_url")


def _late(provider: Provider) -> ModelError:
    reason = f"{provider.name} did not answer within {provider.timeout_seconds:g} seconds"
    return ModelError("timeout", reason, retryable=True, hint="Try again, or allow more: timeout_seconds")


def _unreachable(provider: Provider) -> ModelError:
    reason = f"{provider.name} cannot be reached at {mask_secrets(provider.base_url)}"
    hint = _CHECK_ADDRESS if _is_own(provider) else _CHECK_NETWORK
    return ModelError("unreachable", reason, retryable=True, hint=hint)


def _is_own(provider: Provider) -> bool:
    """Whether the user set the provider's address or runs the provider. Only then may the address be wrong."""
    preset = shipped().providers.get(provider.preset)
    return preset is None or provider.base_url != preset.base_url or is_loopback(provider.base_url)


def _key_hint(provider: Provider) -> str:
    return f"Put a valid one in {provider.key}" if provider.key else f"Name one: key in [providers.{provider.name}]"


def _inner(body: Any) -> Any:
    """The error object of a body: some servers put it into `error`, or into `response.error`."""
    if isinstance(body, dict):
        return body.get("error") or body
    return body


def _codes(body: Any) -> list[str]:
    """The code of an error, then its type, which is less specific."""
    inner = _inner(body)
    found = [inner.get(key) for key in ("code", "type")] if isinstance(inner, dict) else []
    return [str(each) for each in found if isinstance(each, str | int)]


def _status_of(code: str) -> int:
    """The HTTP status for an error code, or 0. Gateways send the status itself as the code."""
    is_status = len(code) == 3 and code.isascii() and code.isdecimal() and code[0] in "45"
    return int(code) if is_status else _STATUS_OF_CODE.get(code, 0)


def _words(body: Any) -> str:
    """The provider's error message; empty if it sent none."""
    inner = _inner(body)
    found = inner.get("message") if isinstance(inner, dict) else inner
    return found if isinstance(found, str) else ""


def _mentions(words: str, phrases: tuple[str, ...]) -> bool:
    return any(each in words.lower() for each in phrases)


def _line(text: str, key: str) -> str:
    """Clean untrusted text for use in one line: printable, short, without the key."""
    plain = mask_secrets(text.replace(key, MASK) if key else text)
    shown = " ".join("".join(each if each.isprintable() else " " for each in plain).split()).rstrip(".")
    return shown if len(shown) <= MAX_SAID else f"{shown[:MAX_SAID]}…"
