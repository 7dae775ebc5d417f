/** The versions that reads ask for, and the rules of which may be asked together (apimachinery, meta/internalversion/validation). */

import type { ApiQuery } from "../api/api-request.ts";
import { apiError, type FieldProblem, forbiddenValue, invalid, unsupportedValue } from "../api/errors.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";

/** @throws KubeApiError 422 for options that do not go together in a list */
export function checkListOptions(query: ApiQuery, version: EmulatedVersion): void {
  const { resourceVersion = "", resourceVersionMatch: match = "" } = query;
  const problems: FieldProblem[] = [];
  if (match !== "") {
    if (resourceVersion === "") {
      problems.push(forbiddenMatch("resourceVersionMatch is forbidden unless resourceVersion is provided"));
    }
    if (query.continue !== undefined) {
      problems.push(forbiddenMatch("resourceVersionMatch is forbidden when continue is provided"));
    }
    if (match !== "Exact" && match !== "NotOlderThan") {
      problems.push(unsupportedValue("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]));
    }
    if (match === "Exact" && resourceVersion === "0") {
      problems.push(forbiddenMatch('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
    }
  }
  if (query.sendInitialEvents !== undefined && version.has("watchList")) {
    problems.push(forbiddenValue("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  refuse(problems);
}

/** @throws KubeApiError 422 for options that do not go together in a watch */
export function checkWatchOptions(query: ApiQuery, version: EmulatedVersion): void {
  const { resourceVersionMatch: match = "", sendInitialEvents } = query;
  const problems: FieldProblem[] = [];
  if (!version.has("watchList")) {
    if (match !== "") problems.push(forbiddenMatch("resourceVersionMatch is forbidden for watch"));
    refuse(problems);
    return;
  }
  if (sendInitialEvents !== undefined) {
    if (match !== "NotOlderThan") {
      problems.push(
        forbiddenMatch("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
      );
    }
    if (!version.gate("WatchList")) {
      const why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
      problems.push(forbiddenValue("sendInitialEvents", why));
    }
  }
  if (match !== "") {
    if (sendInitialEvents === undefined) {
      problems.push(
        forbiddenMatch("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
      );
    }
    if (match !== "NotOlderThan") {
      problems.push(unsupportedValue("resourceVersionMatch", match, ["NotOlderThan"]));
    }
    if (query.continue !== undefined) {
      problems.push(forbiddenMatch("resourceVersionMatch is forbidden when continue is provided"));
    }
  }
  refuse(problems);
}

/** The exact version that a list asks for; undefined: the newest. @throws KubeApiError for one that is not, or not yet */
export function listRevision(
  current: number,
  query: ApiQuery,
  emulated: EmulatedVersion,
): number | undefined {
  const { resourceVersion = "", resourceVersionMatch = "", limit = 0 } = query;
  if (resourceVersion === "") return undefined;
  const version = parseVersion(resourceVersion);
  // Without a match rule, a page of a limited list is of exactly the version it names (1.20, storage/etcd3).
  const isExact =
    resourceVersionMatch === "Exact" || (resourceVersionMatch === "" && version > 0 && limit > 0);
  if (version > current) {
    throw isExact ? futureVersion(version, current, emulated) : tooLargeVersion(version, current);
  }
  return isExact ? version : undefined;
}

/** @throws KubeApiError when a version that is to be reached is none, or is not reached */
export function checkReached(current: number, resourceVersion: string | undefined): void {
  const version = parseVersion(resourceVersion || "0");
  if (version > current) throw tooLargeVersion(version, current);
}

/** The number of a version. @throws KubeApiError 500, as the reference does, when it is none */
export function parseVersion(text: string): number {
  if (!/^\d{1,15}$/.test(text)) {
    const shown = JSON.stringify(text);
    const why = /^\d+$/.test(text) ? "value out of range" : "invalid syntax";
    throw apiError(
      500,
      "",
      `resourceVersion: Invalid value: ${shown}: strconv.ParseUint: parsing ${shown}: ${why}`,
    );
  }
  return Number(text);
}

/** A list of exactly a version that is still to come: refused by etcd, or by the cache that keeps versions itself. */
export function futureVersion(version: number, current: number, emulated: EmulatedVersion): Error {
  if (emulated.gate("ListFromCacheSnapshot")) return tooLargeVersion(version, current);
  return apiError(500, "", "etcdserver: mvcc: required revision is a future revision");
}

/** 504: the version is not reached yet; the reference waits three seconds for it, and a store without replicas need not. */
export function tooLargeVersion(version: number, current: number): Error {
  const message = `Timeout: Too large resource version: ${version}, current: ${current}`;
  return apiError(504, "Timeout", message, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

function refuse(problems: readonly FieldProblem[]): void {
  if (problems.length > 0) throw invalid("meta.k8s.io", "ListOptions", "", problems);
}

function forbiddenMatch(why: string): FieldProblem {
  return forbiddenValue("resourceVersionMatch", why);
}
