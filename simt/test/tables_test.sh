#!/usr/bin/env bash
# tables_test.sh - the tables in hardware/*h200.md and *h100.md are what compare.py writes from the .csv files beside them.
exec python3 "$(dirname "$0")/hardware/compare.py" tables --check
