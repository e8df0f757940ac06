"""The arithmetic, and the numbers that are read from what clients print: python3 -m unittest discover compare"""

import json
import os
import time
import unittest

import analytic
import machine
import quotas
import regions
import rows
import sustained
import tpcc
from client import ClientFailed, CountedContender
from comparison import Case, Figure
from report import significant, table
from rounds import Result, Run, in_turn
from summary import Spread, ratios, spread

PGBENCH = """pgbench (15.18 (Debian 15.18-0+deb12u1), server 15.0)
transaction type: update.sql
number of transactions actually processed: 2064
number of failed transactions: 3 (0.145%)
number of transactions retried: 5 (0.242%)
latency average = 5.812 ms
tps = 688.228492 (without initial connection time)
"""

REDIS_BENCHMARK = """"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms"
"ACQUIRE vm 1","8865.25","5.483","0.776","3.823"
"""

ETCD_BENCHMARK = """
Summary:
  Total:	3.5896 secs.
  Requests/sec:	1114.3229

Latency distribution:
  50% in 0.0454 secs.
  99.9% in 0.1845 secs.
"""

PIECE = analytic.Piece("sale", "sale-0")

PSQL = """Timing is on.
COPY 20000
Time: 968.342 ms
COPY 1000
Time: 1152.697 ms (00:01.153)
"""


class Arithmetic(unittest.TestCase):
    def test_the_median_of_an_odd_number_is_the_middle(self):
        self.assertEqual(spread([5, 1, 3]), Spread(3, 1, 5))

    def test_the_median_of_an_even_number_is_between_the_two_in_the_middle(self):
        self.assertEqual(spread([10, 1, 2, 4]), Spread(3, 1, 10))

    def test_ratios_are_of_the_same_round(self):
        self.assertEqual(ratios([1, 20], [2, 10]), [0.5, 2])

    def test_a_missing_round_is_an_error(self):
        with self.assertRaises(ValueError):
            ratios([1, 2], [1])

    def test_three_digits_are_shown(self):
        self.assertEqual([significant(value) for value in (1234567, 98765.4, 12.345, 0.0061744)], ["1,230,000", "98,800", "12.3", "0.00617"])


class Table(unittest.TestCase):
    def test_the_ratio_is_the_median_of_the_rounds_and_not_of_the_medians(self):
        case = Case("one")
        figures = {"Rhumb": [10, 60, 30], "Redis": [10, 20, 40]}
        runs = [Run(number, system, case, Figure(value)) for system, values in figures.items() for number, value in enumerate(values, 1)]
        result = Result("example", ["Rhumb", "Redis"], {}, [case], runs)
        # The rounds' ratios are 1, 3 and 0.75; the medians' ratio would be 1.5.
        self.assertEqual(result.ratio(case), Spread(1, 0.75, 3))
        self.assertEqual(table(result).splitlines()[-1].split(), ["one", "/s", "30", "(10–60)", "20", "(10–40)", "1", "(0.75–3)"])


class Rounds(unittest.TestCase):
    def test_each_goes_first_in_every_other_round(self):
        self.assertEqual([in_turn(["ours", "theirs"], number)[0] for number in (1, 2, 3)], ["ours", "theirs", "ours"])

    def test_a_client_that_counts_is_told_the_requests_that_fill_the_time(self):
        class Fake(CountedContender):
            sent = []

            def send(self, case, requests):
                self.sent.append(requests)
                return Figure(1000 * len(self.sent))

        fake = Fake(server=None)
        for _ in range(2):
            fake.measure(Case("one"), seconds=10)
        # After the trial, by the rate of the run before.
        self.assertEqual(fake.sent, [fake.TRIAL, 10_000, 20_000])


class Refused(unittest.TestCase):
    """A COPY, which is tried again if the database says that it may."""

    def contender(self, *answers):
        class Fake(analytic.AnalyticContender):
            left = list(answers)

            def timed(self, *_):
                answer = self.left.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer

        return Fake(server=None, pieces=[])

    def test_what_the_refused_try_took_counts(self):
        refused = ClientFailed("", "Time: 100.5 ms\nERROR:  40001: could not serialize access\n")
        self.assertEqual(self.contender(refused, [20.0]).copied(PIECE), [100.5, 20.0])

    def test_other_errors_end_it(self):
        with self.assertRaises(ClientFailed):
            self.contender(ClientFailed("", "Time: 1.0 ms\nERROR:  42P01: no such table\n"), [20.0]).copied(PIECE)

    def test_there_is_a_last_try(self):
        refused = ClientFailed("", "Time: 1.0 ms\nERROR:  40001: could not serialize access\n")
        with self.assertRaises(ClientFailed):
            self.contender(*[refused] * analytic.TRIES_MAX, [20.0]).copied(PIECE)


class Reports(unittest.TestCase):
    def test_pgbench(self):
        details = {"latency_average_ms": 5.812, "transactions": 2064, "failed": 3, "retried": 5}
        self.assertEqual(rows.report(PGBENCH), Figure(688.228492, details))

    def test_pgbench_by_the_minute(self):
        rates = [90.5, 100.0, 98.0]
        # One of five seconds, the last of which does not come.
        times = range(5, 180, 5)
        lines = [f"progress: {at}.0 s, {rates[(at - 1) // 60]} tps, lat 1.0 ms stddev 0.5" for at in times]
        late = "number of transactions above the 100.0 ms latency limit: 7/2064 (0.339%)\n"
        figure = sustained.sustained(PGBENCH + late + "\n".join(lines), [])
        self.assertEqual((figure.value, figure.details["tps_by_minute"]), (0.98, [90.5, 100.0, 98.0]))
        self.assertEqual(figure.details["above_100_ms"], 7)

    def test_too_few_minutes_are_an_error(self):
        with self.assertRaises(ClientFailed):
            sustained.sustained(PGBENCH, [])

    def test_tpcc(self):
        kinds = [{"kind": "new order", "per_minute": 600.0}, {"kind": "payment", "per_minute": 580.0}]
        self.assertEqual(tpcc.report(json.dumps({"kinds": kinds})), Figure(10.0, kinds[0]))

    def test_processor_time(self):
        before, spent = machine.thread_seconds(os.getpid()), time.process_time() + 0.05
        while time.process_time() < spent:
            pass
        after = machine.thread_seconds(os.getpid())
        self.assertGreater(sum(after.values()), sum(before.values()))
        self.assertIn("steal", machine.processor_seconds())

    def test_redis_benchmark(self):
        details = {"avg_latency_ms": 5.483, "min_latency_ms": 0.776, "p50_latency_ms": 3.823}
        self.assertEqual(quotas.report(REDIS_BENCHMARK), Figure(8865.25, details))

    def test_etcd_benchmark(self):
        figure = regions.report(ETCD_BENCHMARK)
        self.assertEqual(figure.value, 1114.3229)
        self.assertEqual({name: round(value, 6) for name, value in figure.details.items()}, {"p50_ms": 45.4, "p99.9_ms": 184.5})

    def test_refused_requests_of_etcd_are_an_error(self):
        with self.assertRaises(ClientFailed):
            regions.report(ETCD_BENCHMARK + "Error distribution:\n  [3]	etcdserver: too many requests\n")

    def test_psql(self):
        milliseconds = analytic.times(PSQL)
        self.assertEqual(milliseconds, [968.342, 1152.697])
        self.assertAlmostEqual(analytic.figure(milliseconds).value, 2.121039)


if __name__ == "__main__":
    unittest.main()
