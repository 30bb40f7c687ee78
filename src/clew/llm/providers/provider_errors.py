"""Errors of providers as one ModelError: one line with the next step, and never a key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clew.errors import ModelError, ModelFailure
from clew.llm.model_catalogue import shipped
from clew.llm.providers.provider import Provider, is_loopback
from clew.llm.providers.response_limits import MAX_RETRY_AFTER, ResponseTooLarge, found_in
from clew.secrecy import MASK, mask_secrets

MAX_SAID = 200
_CHECK_ADDRESS = "Check that it runs, and base_url in config.toml"
_CHECK_NETWORK = "Check your network, and HTTPS_PROXY where a proxy is needed"


@contextmanager
def as_model_errors(provider: Provider, model: str, key: str) -> Iterator[None]:
    """Raises ModelError in place of the errors of the library and the SDKs. Answers of an unexpected shape raise errors
    of any type, so only library calls belong in this block."""
    from pydantic_ai import exceptions as wire  # imported by the caller already

    try:
        yield
    except ResponseTooLarge as error:
        raise _excessive(provider, error) from None
    except wire.ModelAPIError as error:
        if (excess := found_in(error)) is not None:
            raise _excessive(provider, excess) from None
        raise _told(error, provider, model, key) from None
    except wire.ContentFilterError:
        raise ModelError("refused", f"{provider.name} did not let the answer through", hint=_REPHRASE) from None
    except (wire.UnexpectedModelBehavior, ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
        said = _line(str(getattr(error, "message", "")), key) or "it is cut off, or has another shape than expected"
        raise _malformed(provider, said) from None
    except wire.UserError as error:
        reason = f"{provider.name} cannot be asked this: {_line(str(error), key)}"
        raise ModelError("config", reason, hint="Choose another model") from None
    except RuntimeError as error:
        if "ALLOW_MODEL_REQUESTS" not in str(error):
            raise
        raise ModelError("config", "this process may not ask any model", hint="It is forbidden in tests") from None
    except (OSError, EOFError) as error:  # TimeoutError among them
        is_late = isinstance(error, TimeoutError | asyncio.TimeoutError)
        raise _unreachable(provider, is_late=is_late, was_reached=False) from None


_REPHRASE = "Say it otherwise, or choose another model"


def _told(error: Any, provider: Provider, model: str, key: str) -> ModelError:
    from pydantic_ai import exceptions as wire  # imported by the caller already

    said = _said(error, key)
    match error:
        case wire.ModelRequestTimeout() | wire.ModelTimeoutError():
            return _unreachable(provider, is_late=True, was_reached=True)
        case wire.ModelConnectionError():
            return _unreachable(provider, is_late=False, was_reached=error.phase == "read" or error.in_stream)
        case wire.ModelAuthenticationError():
            return ModelError("auth", f"{provider.name} does not accept the key{said}", hint=_key_hint(provider))
        case wire.ModelNotFoundError():
            reason = f"{provider.name} has no model {model!r}{said}"
            return ModelError("config", reason, hint="Check [models] and base_url in config.toml")
        case wire.ModelContextWindowExceededError():
            reason = f"the prompt is too long for {model}{said}"
            return ModelError("too_long", reason, hint="Send less, or choose a model with a larger context")
        case wire.ModelQuotaExceededError():
            return ModelError(
                "rate", f"{provider.name} has no credit left{said}", hint="Add credit, or change the model"
            )
        case wire.ModelRateLimitError():
            reason = f"{provider.name} is asked too often{said}"
            return ModelError("rate", reason, retryable=True, retry_after=_retry_after(error), hint=_wait(error))
        case wire.ModelRequestRejectedError():
            return ModelError("refused", f"{provider.name} refused the request{said}", hint=_REPHRASE)
        case wire.ModelUnavailableError() | wire.ModelServerError():
            reason = f"{provider.name} failed{said}"
            return ModelError("server", reason, retryable=True, retry_after=_retry_after(error), hint=_wait(error))
        case wire.ModelHTTPError():
            return _by_status(error, provider, said)
        case _:
            return _malformed(provider, _line(error.message, key))


def _by_status(error: Any, provider: Provider, said: str) -> ModelError:
    """Return the error of a status without a specific meaning."""
    kind: ModelFailure = "server" if error.status_code >= 500 else "refused"
    reason = f"{provider.name} answered with status {error.status_code}{said}"
    return ModelError(kind, reason, retryable=kind == "server", retry_after=_retry_after(error), hint=_CHECK_ADDRESS)


def _malformed(provider: Provider, said: str) -> ModelError:
    reason = f"{provider.name} answered what cannot be read: {said}"
    return ModelError("malformed", reason, retryable=True, hint="Try again; where it stays so, check base_url")


def _excessive(provider: Provider, excess: ResponseTooLarge) -> ModelError:
    """Not to be tried again: more of the same would come."""
    reason = f"{provider.name} answered more than can be taken: {excess}"
    return ModelError("malformed", reason, hint="Ask for less at once, or check base_url")


def _unreachable(provider: Provider, *, is_late: bool, was_reached: bool) -> ModelError:
    if is_late:
        reason = f"{provider.name} did not answer within {provider.timeout_seconds:g} seconds"
        return ModelError("timeout", reason, retryable=True, hint="Try again, or allow more: timeout_seconds")
    if was_reached:
        reason = f"{provider.name} broke the connection off"
        return ModelError("unreachable", reason, retryable=True, hint="Try again")
    reason = f"{provider.name} cannot be reached at {mask_secrets(provider.base_url)}"
    hint = _CHECK_ADDRESS if _is_own(provider) else _CHECK_NETWORK
    return ModelError("unreachable", reason, retryable=True, hint=hint)


def _is_own(provider: Provider) -> bool:
    """Whether the user says where it answers, or runs it: its address may be wrong, while that of others is known."""
    preset = shipped().providers.get(provider.preset)
    return preset is None or provider.base_url != preset.base_url or is_loopback(provider.base_url)


def _key_hint(provider: Provider) -> str:
    return f"Put a valid one in {provider.key}" if provider.key else f"Name one: key in [providers.{provider.name}]"


def _retry_after(error: Any) -> float | None:
    """The seconds that a provider asks to wait, up to a limit."""
    after = error.retry_after
    return None if after is None or not after >= 0 else min(float(after), MAX_RETRY_AFTER)


def _wait(error: Any) -> str:
    after = _retry_after(error)
    if after is None:
        return "Try again later"
    if error.retry_after > MAX_RETRY_AFTER:
        return "Try again in more than an hour"
    return f"Try again in {after:.3g} seconds" if after < 120 else f"Try again in {round(after / 60)} minutes"


def _said(error: Any, key: str) -> str:
    """The provider's own words, where it sent any."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, dict) else body
    found = inner.get("message") if isinstance(inner, dict) else inner
    return f": {_line(found, key)}" if isinstance(found, str) and found.strip() else ""


def _line(text: str, key: str) -> str:
    """Words of strangers as part of one line: printable, short, without the key."""
    plain = mask_secrets(text.replace(key, MASK) if key else text)
    shown = " ".join("".join(each if each.isprintable() else " " for each in plain).split()).rstrip(".")
    return shown if len(shown) <= MAX_SAID else f"{shown[:MAX_SAID]}…"
