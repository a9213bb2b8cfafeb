"""Tests of handler.py, without WebAssembly: `python3 -m unittest`."""

import unittest

from handler import Payload, handle
from jobq import Context, Fatal, Retry, RetryAfter, Snooze, described, read


class HandlerTest(unittest.TestCase):
    def test_doubles(self):
        with self.assertLogs("handler") as logs:
            self.assertEqual(handle(Payload(n=2), Context(attempt=2)), {"doubled": 4})
        self.assertEqual(logs.records[0].getMessage(), "doubling 2, attempt 2 of 3")

    def test_a_number_out_of_range_is_fatal(self):
        for n in (-1, 1_000_001):
            with self.assertRaisesRegex(Fatal, f"`n` is {n}"):
                handle(Payload(n=n), Context())

    def test_a_service_that_is_down_is_retried(self):
        with self.assertRaisesRegex(Retry, "down"):
            handle(Payload(n=2, service="down"), Context())

    def test_a_busy_service_is_retried_after_a_delay(self):
        with self.assertRaises(RetryAfter) as answer:
            handle(Payload(n=2, service="busy"), Context())
        self.assertEqual(answer.exception.seconds, 30)

    def test_a_closed_service_snoozes(self):
        with self.assertRaises(Snooze) as answer:
            handle(Payload(n=2, service="closed"), Context())
        self.assertEqual(answer.exception.seconds, 60)


class PayloadTest(unittest.TestCase):
    def test_is_parsed_from_json(self):
        self.assertEqual(read(Payload, '{"n": 2, "other": [1]}'), Payload(n=2, service="up"))

    def test_an_invalid_payload_is_fatal(self):
        for text, why in (
            ("{", "bad payload: Expecting"),
            ("[2]", "bad payload: it is not an object"),
            ("{}", "bad payload: `n` is missing"),
            ('{"n": "2"}', 'bad payload: `n` is "2", not int'),
            ('{"n": true}', "bad payload: `n` is true, not int"),
        ):
            with self.assertRaisesRegex(Fatal, why):
                read(Payload, text)


class DescribedTest(unittest.TestCase):
    def test_starts_with_type_and_message(self):
        self.assertRegex(caught(lambda: [][1]), r"^IndexError: list index out of range\n    at <lambda> \(.*test_handler.py:\d+\)\n")

    def test_names_the_cause(self):
        def outer():
            try:
                {}["width"]
            except KeyError as error:
                raise ValueError("no size") from error

        self.assertRegex(caught(outer), r"(?s)^ValueError: no size\n    at .*\ncaused by: KeyError: 'width'\n    at ")

    def test_is_unicode(self):
        def surrogate():
            raise ValueError("\ud800")

        self.assertTrue(caught(surrogate).startswith("ValueError: ?\n    at surrogate "))

    def test_is_bounded(self):
        def long():
            raise ValueError("x" * 1_000_000)

        self.assertEqual(len(caught(long)), 4000)


def caught(act) -> str:
    try:
        act()
    except Exception as error:
        return described(error)
    raise AssertionError("nothing was raised")
