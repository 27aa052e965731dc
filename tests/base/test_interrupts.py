"""Ctrl+C ends what it interrupts, whatever that makes of it."""

from __future__ import annotations

import signal

import pytest

from cashmere.base.interrupts import keep_interrupt


@pytest.fixture(autouse=True)
def ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupted_as(error: Exception) -> None:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise error from None


def test_interrupt_that_became_another_exception_is_an_interrupt_again():
    with pytest.raises(KeyboardInterrupt) as info, keep_interrupt():
        interrupted_as(ValueError("is not a valid PEP 3118 buffer format string"))
    assert isinstance(info.value.__cause__, ValueError)


def test_interrupts_and_other_exceptions_are_passed_on():
    with pytest.raises(KeyboardInterrupt), keep_interrupt():
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(ValueError, match=r"^of the work$"), keep_interrupt():
        raise ValueError("of the work")


def test_handlers_of_others_are_left_alone():
    pressed = []
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    with keep_interrupt():
        signal.raise_signal(signal.SIGINT)
    assert pressed == [signal.SIGINT]
    signal.signal(signal.SIGINT, signal.default_int_handler)
