/** Where a webhook is called (apiserver pkg/util/webhook/validation.go). */
import { type FieldProblem, invalidValue, requiredValue } from "../../api/errors.ts";
import { subdomainProblems } from "../../api/names.ts";
import type { Loose } from "./shaping.ts";

const form = "; desired format: https://host[/path]";

/** Problems of a `clientConfig.url`. */
export function webhookUrlProblems(text: string, at: string): FieldProblem[] {
  // As net/url has it: what is missing is empty.
  const parts = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/([^/?#]*))?[^?#]*(\?[^#]*)?(#.*)?$/.exec(text);
  if (parts === null) return [requiredValue(at, `url must be a valid URL: ${JSON.stringify(text)}${form}`)];
  const [, scheme = "", authority = "", query = "", fragment = ""] = parts;
  const userEnd = authority.lastIndexOf("@");
  const host = authority.slice(userEnd + 1);
  const problems: FieldProblem[] = [];
  if (scheme.toLowerCase() !== "https") {
    const why = `'https' is the only allowed URL scheme${form}`;
    problems.push(invalidValue(at, scheme.toLowerCase(), why));
  }
  if (host === "") problems.push(invalidValue(at, host, `host must be provided${form}`));
  else if (scheme.toLowerCase() === "https" && !URL.canParse(text)) {
    problems.push(requiredValue(at, `url must be a valid URL: ${JSON.stringify(text)}${form}`));
  }
  if (userEnd >= 0) {
    // The password stays out of the answer.
    const user = authority.slice(0, userEnd).replace(/:.*/, "");
    problems.push(invalidValue(at, user, "user information is not permitted in the URL"));
  }
  if (fragment.length > 1) {
    problems.push(invalidValue(at, fragment.slice(1), "fragments are not permitted in the URL"));
  }
  if (query.length > 1) {
    problems.push(invalidValue(at, query.slice(1), "query parameters are not permitted in the URL"));
  }
  return problems;
}

/** Problems of a `clientConfig.service`. */
export function webhookServiceProblems(service: Loose, at: string): FieldProblem[] {
  const { name = "", namespace = "", port = 0, path = "" } = service;
  const problems: FieldProblem[] = [];
  if (name === "") problems.push(requiredValue(`${at}.name`, "service name is required"));
  if (namespace === "") problems.push(requiredValue(`${at}.namespace`, "service namespace is required"));
  if (port < 1 || port > 65535) {
    const why = "port is not valid: must be between 1 and 65535, inclusive";
    problems.push(invalidValue(`${at}.port`, port, why));
  }
  return [...problems, ...pathProblems(path, `${at}.path`)];
}

function pathProblems(path: string, at: string): FieldProblem[] {
  if (path === "" || path === "/") return [];
  if (path === "//") return [invalidValue(at, path, "segment[0] may not be empty")];
  const problems: FieldProblem[] = [];
  if (!path.startsWith("/")) problems.push(invalidValue(at, path, "must start with a '/'"));
  const steps = path.slice(1).replace(/\/$/, "").split("/");
  for (const [i, step] of steps.entries()) {
    if (step === "") problems.push(invalidValue(at, path, `segment[${i}] may not be empty`));
    else
      problems.push(...subdomainProblems(step).map((why) => invalidValue(at, path, `segment[${i}]: ${why}`)));
  }
  return problems;
}
