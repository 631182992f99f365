#!/usr/bin/env bash
# What action.yml runs. Every input comes as an environment variable and leaves as one word
# of an array: nothing in it is read as shell, and nothing of it as another option.
set -euo pipefail

fail() {
  printf 'gguf-audit action: %s\n' "$1" >&2
  exit 2
}

arguments=()
while IFS= read -r target; do
  target=${target#"${target%%[![:space:]]*}"} target=${target%"${target##*[![:space:]]}"}
  case $target in
    '') continue ;;
    -*) target=./$target ;;
  esac
  arguments+=("$target")
done <<<"${AUDIT_TARGETS-}"
[ "${#arguments[@]}" -gt 0 ] || fail 'the input targets is empty'

one_line() { # NAME VALUE
  case $2 in *[[:cntrl:]]*) fail "the input $1 must be one line" ;; esac
}

option() { # NAME VALUE
  one_line "$1" "$2"
  if [ -n "$2" ]; then arguments+=("--$1=$2"); fi
}

flag() { # NAME VALUE
  case $2 in
    true) arguments+=("--$1") ;;
    false | '') ;;
    *) fail "the input $1 is true or false" ;;
  esac
}

option against "${AUDIT_AGAINST-}"
option policy "${AUDIT_POLICY-}"
option profile "${AUDIT_PROFILE-}"
option baseline "${AUDIT_BASELINE-}"
option fail-on "${AUDIT_FAIL_ON-}"
option require "${AUDIT_REQUIRE-}"
option max-cache "${AUDIT_MAX_CACHE-}"
flag offline "${AUDIT_OFFLINE-}"
flag allow-unknown "${AUDIT_ALLOW_UNKNOWN-}"
sarif=${AUDIT_SARIF-}
one_line sarif "$sarif"
if [ -n "$sarif" ]; then arguments+=("--report=sarif=$sarif"); fi
if [ -n "${GITHUB_STEP_SUMMARY-}" ]; then
  # Appended to: what stands there stays.
  exec 3>>"$GITHUB_STEP_SUMMARY"
  arguments+=(--report=markdown=/dev/fd/3)
fi

code=0
gguf-audit check "${arguments[@]}" --format=github || code=$?
[ "$code" -ne 2 ] || exit 2

if [ -n "${GITHUB_OUTPUT-}" ]; then
  # Later steps run in the workspace, wherever this one did.
  case $sarif in '' | /*) ;; *) sarif=$PWD/$sarif ;; esac
  printf 'exit-code=%s\nsarif=%s\n' "$code" "$sarif" >>"$GITHUB_OUTPUT"
fi
exit "$code"
