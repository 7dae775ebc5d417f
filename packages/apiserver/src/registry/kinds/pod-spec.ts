/** The spec of a pod or a pod template: what is filled in, and what must hold (core/v1 defaults.go, validation.go). */
import {
  duplicateValue,
  type FieldProblem,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import { labelProblems } from "../names.ts";
import { canonicalQuantities, type Loose, mapItems, withDefaults, withMember } from "./shaping.ts";
import { volumeDefaults } from "./volume-sources.ts";

/** What a template's spec gets. */
export function podSpecDefaults(spec: Loose): Loose {
  let result = withDefaults(spec, {
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    securityContext: {},
    schedulerName: "default-scheduler",
  });
  if (result.serviceAccountName && result.serviceAccount !== result.serviceAccountName) {
    result = { ...result, serviceAccount: result.serviceAccountName };
  }
  result = withMember(result, "volumes", (volumes) =>
    mapItems(volumes, (volume) =>
      volumeDefaults(Object.keys(volume).length === 1 ? { ...volume, emptyDir: {} } : volume),
    ),
  );
  for (const list of ["containers", "initContainers"]) {
    result = withMember(result, list, (containers) => mapItems(containers, containerDefaults));
  }
  return result;
}

function containerDefaults(container: Loose): Loose {
  const tag =
    String(container.image ?? "")
      .split("/")
      .at(-1) ?? "";
  const latest = !tag.includes("@") && (!tag.includes(":") || tag.endsWith(":latest"));
  let result = withDefaults(container, {
    resources: {},
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: latest ? "Always" : "IfNotPresent",
  });
  result = withMember(result, "ports", (ports) =>
    mapItems(ports, (port) => withDefaults(port, { protocol: "TCP" })),
  );
  result = withMember(result, "env", (env) =>
    mapItems(env, (e) =>
      withMember(e, "valueFrom", (from) =>
        withMember(from, "fieldRef", (ref) => withDefaults(ref, { apiVersion: "v1" })),
      ),
    ),
  );
  result = withMember(result, "resources", resourceDefaults);
  for (const probe of ["livenessProbe", "readinessProbe", "startupProbe"]) {
    result = withMember(result, probe, probeDefaults);
  }
  return result;
}

/** What is limited and not asked for is asked for in full. */
function resourceDefaults(resources: Loose): Loose {
  const canonical = withMember(
    withMember(resources, "limits", canonicalQuantities),
    "requests",
    canonicalQuantities,
  );
  if (canonical.limits === undefined) return canonical;
  const requests = withDefaults(canonical.requests, canonical.limits);
  return requests === canonical.requests ? canonical : { ...canonical, requests };
}

function probeDefaults(probe: Loose): Loose {
  const filled = withDefaults(probe, {
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
  return withMember(filled, "httpGet", (get) => withDefaults(get, { path: "/", scheme: "HTTP" }));
}

const restartPolicies = ["Always", "Never", "OnFailure"];

/** Problems of a pod's or template's spec. */
export function podSpecProblems(spec: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const volumes: readonly Loose[] = spec.volumes ?? [];
  for (const [i, volume] of volumes.entries()) {
    const field = `${at}.volumes[${i}].name`;
    if (!volume.name) problems.push(requiredValue(field));
    else problems.push(...labelProblems(volume.name).map((why) => invalidValue(field, volume.name, why)));
    if (volumes.findIndex((v) => v.name === volume.name) < i)
      problems.push(duplicateValue(field, volume.name));
  }
  if ((spec.containers ?? []).length === 0) problems.push(requiredValue(`${at}.containers`));
  const names: string[] = [];
  for (const list of ["containers", "initContainers"]) {
    for (const [i, container] of ((spec[list] ?? []) as readonly Loose[]).entries()) {
      problems.push(...containerProblems(container, `${at}.${list}[${i}]`, volumes, names));
    }
  }
  if (!restartPolicies.includes(spec.restartPolicy)) {
    problems.push(
      unsupportedValue(`${at}.restartPolicy`, spec.restartPolicy, ["Always", "OnFailure", "Never"]),
    );
  }
  return problems;
}

function containerProblems(
  container: Loose,
  at: string,
  volumes: readonly Loose[],
  names: string[],
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (!container.name) problems.push(requiredValue(`${at}.name`));
  else {
    problems.push(
      ...labelProblems(container.name).map((why) => invalidValue(`${at}.name`, container.name, why)),
    );
    if (names.includes(container.name)) problems.push(duplicateValue(`${at}.name`, container.name));
    names.push(container.name);
  }
  if (!container.image) problems.push(requiredValue(`${at}.image`));
  for (const [list, path] of [
    ["volumeMounts", "mountPath"],
    ["volumeDevices", "devicePath"],
  ] as const) {
    for (const [i, mount] of ((container[list] ?? []) as readonly Loose[]).entries()) {
      const here = `${at}.${list}[${i}]`;
      if (!mount.name) problems.push(requiredValue(`${here}.name`));
      else if (!volumes.some((volume) => volume.name === mount.name)) {
        problems.push({
          reason: "FieldValueNotFound",
          message: `Not found: ${JSON.stringify(mount.name)}`,
          field: `${here}.name`,
        });
      }
      if (!mount[path]) problems.push(requiredValue(`${here}.${path}`));
    }
  }
  return problems;
}
