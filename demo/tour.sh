#!/bin/sh
# What `make demo` runs on the lab's node: `dpctl lab run -- sh demo/tour.sh`.
set -eu

show() {
    printf '\n\033[1m$ %s\033[0m\n' "$*"
    "$@"
}

show dpctl resources
show dpctl devices
show dpctl pods -A
show dpctl plugins
show dpctl resources -o wide
