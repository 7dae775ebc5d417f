/** Environment variables, and what of the pod they and downward volumes may show (pkg/apis/core/validation ValidateEnv). */
import { type FieldProblem, invalidValue, requiredValue, unsupportedValue } from "../../api/errors.ts";
import { qualifiedNameProblems, subdomainProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import type { Loose } from "./shaping.ts";

const nameRule =
  "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')";
const keyRule =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

function upwardProblems(name: string): string[] {
  if (name === ".") return ["must not be '.'"];
  if (name === "..") return ["must not be '..'"];
  return name.startsWith("..") ? ["must not start with '..'"] : [];
}

function envNameProblems(name: string, at: string): FieldProblem[] {
  spendTime();
  const form = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name) ? [] : [nameRule];
  return [...form, ...upwardProblems(name)].map((why) => invalidValue(at, name, why));
}

/** Keys of ConfigMaps and Secrets. */
function keyProblems(key: string, at: string): FieldProblem[] {
  if (key === "") return [requiredValue(at)];
  const problems: string[] = [];
  if (key.length > 253) problems.push("must be no more than 253 characters");
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) problems.push(keyRule);
  return [...problems, ...upwardProblems(key)].map((why) => invalidValue(at, key, why));
}

/** Fields that a variable may show. */
const envFields = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.podIP",
  "status.podIPs",
];
/** Fields that a file of a downward volume may show. */
export const fileFields: readonly string[] = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
];
const convertible: ReadonlySet<string> = new Set([
  ...envFields,
  ...fileFields,
  "spec.restartPolicy",
  "spec.schedulerName",
  "status.phase",
  "spec.host",
  "status.hostIPs",
]);

/** A reference to a field of the pod. */
export function fieldRefProblems(
  { fieldPath = "" }: Loose,
  at: string,
  fields: readonly string[],
): FieldProblem[] {
  const field = `${at}.fieldPath`;
  if (fieldPath === "") return [requiredValue(field)];
  const subscript = /^(.*)\['(.*)'\]$/.exec(fieldPath);
  if (subscript !== null) {
    const [, path = "", key = ""] = subscript;
    if (path !== "metadata.annotations" && path !== "metadata.labels") {
      return [invalidValue(field, path, "does not support subscript")];
    }
    const name = path === "metadata.annotations" ? key.toLowerCase() : key;
    return qualifiedNameProblems(name).map((why) => invalidValue(at, key, why));
  }
  if (!convertible.has(fieldPath)) {
    const why = `error converting fieldPath: field label not supported: ${fieldPath}`;
    return [invalidValue(field, fieldPath, why)];
  }
  return fields.includes(fieldPath) ? [] : [unsupportedValue(field, fieldPath, fields)];
}

const resourceFields = [
  "limits.cpu",
  "limits.ephemeral-storage",
  "limits.memory",
  "requests.cpu",
  "requests.ephemeral-storage",
  "requests.memory",
];
const byteDivisors = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/** A reference to what a container asks for or may have. */
export function resourceRefProblems(ref: Loose, at: string, volume: boolean): FieldProblem[] {
  const { resource = "", containerName, divisor = "0" } = ref;
  if (volume && !containerName) return [requiredValue(`${at}.containerName`)];
  if (resource === "") return [requiredValue(`${at}.resource`)];
  if (!resourceFields.includes(resource)) {
    return [unsupportedValue(`${at}.resource`, resource, resourceFields)];
  }
  if (divisor === "0") return [];
  const field = `${at}.divisor`;
  if (resource.endsWith("cpu")) {
    if (divisor === "1m" || divisor === "1") return [];
    return [
      invalidValue(field, resource, "only divisor's values 1m and 1 are supported with the cpu resource"),
    ];
  }
  if (byteDivisors.includes(divisor)) return [];
  const what = resource.endsWith("memory") ? "memory" : "local ephemeral storage";
  const why = `only divisor's values ${byteDivisors.join(", ")} are supported with the ${what} resource`;
  return [invalidValue(field, resource, why)];
}

function keySelectorProblems({ name = "", key = "" }: Loose, at: string): FieldProblem[] {
  return [
    ...subdomainProblems(name).map((why) => invalidValue(`${at}.name`, name, why)),
    ...keyProblems(key, `${at}.key`),
  ];
}

function valueFromProblems(variable: Loose, at: string): FieldProblem[] {
  const { valueFrom: from } = variable;
  if (from === undefined) return [];
  const problems: FieldProblem[] = [];
  const sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"].filter(
    (key) => from[key] !== undefined,
  );
  for (const key of sources) {
    const [ref, here] = [from[key] as Loose, `${at}.${key}`];
    if (key === "fieldRef") problems.push(...fieldRefProblems(ref, here, envFields));
    else if (key === "resourceFieldRef") problems.push(...resourceRefProblems(ref, here, false));
    else if (key !== "fileKeyRef") problems.push(...keySelectorProblems(ref, here));
  }
  if (sources.length === 0) {
    const why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
    problems.push(invalidValue(at, "", why));
  }
  if (variable.value && sources.length > 0) {
    problems.push(invalidValue(at, "", "may not be specified when `value` is not empty"));
  } else if (sources.length > 1) {
    problems.push(invalidValue(at, "", "may not have more than one field specified at a time"));
  }
  return problems;
}

/** Problems of `env`. */
export function envProblems(variables: readonly Loose[], at: string): FieldProblem[] {
  return variables.flatMap((variable, i) => [
    ...(variable.name
      ? envNameProblems(variable.name, `${at}[${i}].name`)
      : [requiredValue(`${at}[${i}].name`)]),
    ...valueFromProblems(variable, `${at}[${i}].valueFrom`),
  ]);
}

/** Problems of `envFrom`. */
export function envFromProblems(sources: readonly Loose[], at: string): FieldProblem[] {
  return sources.flatMap((source, i) => {
    spendTime();
    const here = `${at}[${i}]`;
    const problems = source.prefix ? envNameProblems(source.prefix, `${here}.prefix`) : [];
    const refs = ["configMapRef", "secretRef"].filter((key) => source[key] !== undefined);
    for (const key of refs) {
      const { name = "" } = source[key] as Loose;
      if (name === "") problems.push(requiredValue(`${here}.${key}.name`));
      else
        problems.push(
          ...subdomainProblems(name).map((why) => invalidValue(`${here}.${key}.name`, name, why)),
        );
    }
    if (refs.length === 0) {
      problems.push(invalidValue(at, "", "must specify one of: `configMapRef` or `secretRef`"));
    } else if (refs.length > 1) {
      problems.push(invalidValue(at, "", "may not have more than one field specified at a time"));
    }
    return problems;
  });
}
