"""Ctrl+C ends what it interrupts, whatever that makes of it, and so does SIGTERM where it stands for Ctrl+C."""

from __future__ import annotations

import signal

import pytest

from cashmere.base.interrupts import keep_interrupt, stop_on_interrupt, terminate_as_interrupt


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


def test_termination_stops_first_and_interrupts_then():
    before = signal.getsignal(signal.SIGTERM)
    with terminate_as_interrupt():
        with stop_on_interrupt() as stop:
            signal.raise_signal(signal.SIGTERM)
            assert stop.is_set()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_termination_interrupts_even_where_interrupts_are_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt():
        signal.raise_signal(signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.default_int_handler)
