#!/bin/sh
# Makes .venv and installs the course in it, once: set_up.sh lab|dev
#
# A second run finds the record that the first one left and does nothing. The
# record holds what the set-up depends on (the tested versions, the
# requirements, this folder's path), so it is out of date when one of them is.
# Plain POSIX sh: it has to run before any suitable Python is known.
set -eu
cd "$(dirname "$0")/.."

extra=${1:?usage: set_up.sh lab|dev}
ready=.venv/attn-course-ready-$extra   # what the finished set-up depended on
started=.venv-unfinished               # there from the first step to the last
log=setup.log                          # pip's warnings and errors

fail() {
    printf 'attn_course: %s\n' "$*" >&2
    exit 1
}

# Prints "3.12 tested" (or old, or new), and "-without-venv" where venv cannot work.
describe() {
    "$1" -c '
import sys
version = sys.version_info[:2]
age = "old" if version < (3, 11) else "new" if version > (3, 13) else "tested"
try:
    import ensurepip, venv
except ImportError:
    age += "-without-venv"
print("%d.%d %s" % (version + (age,)))
' 2>/dev/null </dev/null || true
}

# Sets `python` to the first suitable one. An untried newer Python is better
# than none, but only when no tested one is there.
find_python() {
    python= newer= no_venv= old=
    for candidate in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.11 python3 python; do
        found=$(describe "$candidate")
        case $found in
            *' tested') python=$candidate; return ;;
            *' new') newer=${newer:-$candidate} ;;
            *-without-venv) no_venv=${no_venv:-$found} ;;
            *' old') old=${old:-${found% *}} ;;
        esac
        # A Python that was asked for by name is not replaced by another.
        [ -z "${PYTHON:-}" ] || break
    done
    wanted='Python 3.11, 3.12 or 3.13'
    if [ -n "$newer" ]; then
        python=$newer
        printf 'attn_course: %s is newer than the tested versions (%s)\n' "$newer" "$wanted" >&2
    elif [ -n "${PYTHON:-}" ] && [ -z "$no_venv$old" ]; then
        fail "PYTHON=$PYTHON does not run; the course needs $wanted"
    elif [ -n "$no_venv" ]; then
        version=${no_venv% *}
        case $no_venv in *' old-'*) fail "needs $wanted, but found only Python $version" ;; esac
        fail "Python $version is here without its venv module; on Debian or Ubuntu: sudo apt install python$version-venv"
    elif [ -n "$old" ]; then
        fail "needs $wanted, but found only Python $old; install a newer one and run this again"
    else
        fail "needs $wanted, but found no Python; install one and run this again"
    fi
}

wanted_record() {
    pwd
    cksum constraints.txt pyproject.toml
}

# Whether .venv has the Python that was asked for by name, if one was.
is_asked_for() {
    [ -z "${PYTHON:-}" ] || [ "$(describe "$PYTHON")" = "$(describe .venv/bin/python)" ]
}

# The record is believed only while nothing is half done and the Python that
# .venv stands on still runs.
is_ready() {
    [ ! -e "$started" ] && [ -f "$1" ] && [ "$(cat "$1")" = "$(wanted_record)" ] &&
        .venv/bin/python -c '' 2>/dev/null && is_asked_for
}

# Scripts in .venv/bin name the folder they were installed in.
was_moved() {
    for record in .venv/attn-course-ready-*; do
        [ -f "$record" ] && [ "$(head -n 1 "$record")" != "$(pwd)" ] && return
    done
    return 1
}

# To make .venv anew empties it. What is not ours to empty is left alone.
refuse_to_empty() {
    if [ -L .venv ]; then
        fail ".venv is a link, and what it leads to would be emptied; remove the link and run this again"
    elif [ -e .venv ] && [ ! -e "$started" ] && [ ! -f .venv/pyvenv.cfg ]; then
        fail ".venv is there and is no virtual environment; move it away and run this again"
    fi
}

# A .venv that does not run, was moved, is half installed or has another Python than PYTHON
# is made anew; one that works, for instance made by hand with a CPU build of torch, is kept.
make_venv() {
    if [ ! -e "$started" ] && ! was_moved && .venv/bin/python -m pip --version >/dev/null 2>&1 && is_asked_for; then
        case $(describe .venv/bin/python) in
            *' tested' | *' new') return ;;
        esac
    fi
    find_python
    refuse_to_empty
    : >"$started"
    printf 'attn_course: making .venv with %s\n' "$("$python" --version 2>&1)"
    "$python" -m venv --clear .venv 2>"$log" >&2 ||
        fail "$python could not make .venv: $(tail -n 1 "$log")"
}

explain_failure() {
    if grep -q -i -E 'connection (broken|error|refused|reset)|name resolution|timed out' "$log"; then
        # pip installs after the last download, so .venv is as it was.
        rm -f "$started"
        fail "no network: the packages could not be downloaded. Connect and run this again (pip's log: $log)"
    elif grep -q -i 'no space left' "$log"; then
        fail "the disk is full; free a few gigabytes and run this again"
    fi
    reason=$(grep -i '^ *error' "$log" | head -n 1)
    fail "pip stopped: ${reason:-$(tail -n 1 "$log")} (its log: $log)"
}

install() {
    # pip shows its progress to a person; in a log it would be noise.
    quiet=
    [ -t 1 ] || quiet=-q
    : >"$started"
    printf 'attn_course: installing the tested versions; the first time takes minutes\n'
    PIP_USER=0 PIP_RETRIES=${PIP_RETRIES:-2} .venv/bin/python -m pip install $quiet --disable-pip-version-check \
        -c constraints.txt -e ".[$extra]" 2>"$log" || explain_failure
    # [dev] includes [lab], so that one set-up serves both.
    [ "$extra" = lab ] || wanted_record >.venv/attn-course-ready-lab
    wanted_record >"$ready"
    rm -f "$started" "$log"
}

is_ready "$ready" && exit 0
make_venv
install
