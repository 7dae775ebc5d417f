/** Rules for names, labels and other words of the API (apimachinery util/validation). */
import type { Random } from "@longshore/runtime";
import { spendTime } from "./work-time.ts";

const label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const dnsLabel = new RegExp(`^${label}$`);
const dnsSubdomain = new RegExp(`^${label}(\\.${label})*$`);
const qualifiedName = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

const labelRule =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const dns1035Rule =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const subdomainRule =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const qualifiedRule =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const labelValueRule =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/** Why `name` is no DNS label (at most 63 characters). */
export function labelProblems(name: string): string[] {
  spendTime();
  const problems: string[] = [];
  if (name.length > 63) problems.push("must be no more than 63 characters");
  if (!dnsLabel.test(name)) problems.push(labelRule);
  return problems;
}

/** Why `name` is no DNS label that begins with a letter, as the names of kinds are (RFC 1035). */
export function dns1035LabelProblems(name: string): string[] {
  spendTime();
  const problems: string[] = [];
  if (name.length > 63) problems.push("must be no more than 63 characters");
  if (!/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name)) problems.push(dns1035Rule);
  return problems;
}

/** Why `name` is no DNS subdomain (at most 253 characters). */
export function subdomainProblems(name: string): string[] {
  spendTime();
  const problems: string[] = [];
  if (name.length > 253) problems.push("must be no more than 253 characters");
  if (!dnsSubdomain.test(name)) problems.push(subdomainRule);
  return problems;
}

/** Why `name` cannot be a segment of a path. */
export function pathSegmentProblems(name: string): string[] {
  if (name === "." || name === "..") return [`may not be '${name}'`];
  return ["/", "%"].filter((c) => name.includes(c)).map((c) => `may not contain '${c}'`);
}

/** Why `key` is no qualified name: `name` or `prefix/name`, the form of label keys. */
export function qualifiedNameProblems(key: string): string[] {
  spendTime();
  const parts = key.split("/");
  const name = parts.at(-1) ?? "";
  const problems: string[] = [];
  if (parts.length > 2) {
    return [
      `a qualified name ${qualifiedRule.slice("name part ".length).replace(")", ")")} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  if (parts.length === 2) {
    const prefix = parts[0] ?? "";
    if (prefix === "") problems.push("prefix part must be non-empty");
    else problems.push(...subdomainProblems(prefix).map((p) => `prefix part ${p}`));
  }
  if (name === "") problems.push("name part must be non-empty");
  else if (name.length > 63) problems.push("name part must be no more than 63 characters");
  if (!qualifiedName.test(name)) problems.push(qualifiedRule);
  return problems;
}

/** Why `value` is no label value. */
export function labelValueProblems(value: string): string[] {
  spendTime();
  const problems: string[] = [];
  if (value.length > 63) problems.push("must be no more than 63 characters");
  if (value !== "" && !qualifiedName.test(value)) problems.push(labelValueRule);
  return problems;
}

/** Letters and digits of generated names: none that make words or look alike. */
const alphabet = "bcdfghjklmnpqrstvwxz2456789";

/** `base` with five random characters (apiserver names.SimpleNameGenerator); `base` is cut to fit 63. */
export function generatedName(base: string, random: Random): string {
  let name = base.slice(0, 58);
  for (let i = 0; i < 5; i++) name += alphabet[random.below(alphabet.length, "generated name")];
  return name;
}
