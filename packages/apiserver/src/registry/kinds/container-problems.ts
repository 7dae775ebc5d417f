import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  notFoundValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import { labelProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import { envFromProblems, envProblems } from "./env-problems.ts";
import { resourceProblems } from "./resource-problems.ts";
import type { Loose } from "./shaping.ts";
import { backstepProblems } from "./source-rules.ts";

/** A container's surroundings. */
export interface ContainerContext {
  /** Volumes of the pod that are sound, by name. */
  readonly volumes: ReadonlyMap<string, Loose>;
  readonly init: boolean;
}

const protocols = ["SCTP", "TCP", "UDP"];
const pullPolicies = ["Always", "IfNotPresent", "Never"];
const propagations = ["Bidirectional", "HostToContainer", "None"];
const schemes = ["HTTP", "HTTPS"];

/** Names of ports (apimachinery util/validation IsValidPortName). */
export function portNameProblems(name: string, at: string): FieldProblem[] {
  const problems: string[] = [];
  if (name.length > 15) problems.push("must be no more than 15 characters");
  if (!/^[-a-z0-9]+$/.test(name)) {
    problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!/[a-z]/.test(name)) problems.push("must contain at least one letter or number (a-z, 0-9)");
  if (name.includes("--")) problems.push("must not contain consecutive hyphens");
  if (/^-|-$/.test(name)) problems.push("must not begin or end with a hyphen");
  return problems.map((why) => invalidValue(at, name, why));
}

/** Numbers of ports. */
export function portNumberProblems(port: unknown, at: string): FieldProblem[] {
  return Number(port) >= 1 && Number(port) <= 65_535
    ? []
    : [invalidValue(at, port ?? 0, "must be between 1 and 65535, inclusive")];
}

function portProblems(port: Loose, at: string, names: Set<string>): FieldProblem[] {
  spendTime();
  const problems: FieldProblem[] = [];
  if (port.name) {
    const wrong = portNameProblems(port.name, `${at}.name`);
    problems.push(...wrong);
    if (wrong.length === 0) {
      if (names.has(port.name)) problems.push(duplicateValue(`${at}.name`, port.name));
      names.add(port.name);
    }
  }
  if (!port.containerPort) problems.push(requiredValue(`${at}.containerPort`));
  else problems.push(...portNumberProblems(port.containerPort, `${at}.containerPort`));
  if (port.hostPort) problems.push(...portNumberProblems(port.hostPort, `${at}.hostPort`));
  if (!port.protocol) problems.push(requiredValue(`${at}.protocol`));
  else if (!protocols.includes(port.protocol)) {
    problems.push(unsupportedValue(`${at}.protocol`, port.protocol, protocols));
  }
  return problems;
}

function httpProblems({ path, port, scheme = "", httpHeaders = [] }: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = path ? [] : [requiredValue(`${at}.path`)];
  problems.push(
    ...(typeof port === "string"
      ? portNameProblems(port, `${at}.port`)
      : portNumberProblems(port, `${at}.port`)),
  );
  if (!schemes.includes(scheme)) problems.push(unsupportedValue(`${at}.scheme`, scheme, schemes));
  for (const { name = "" } of httpHeaders as readonly Loose[]) {
    spendTime();
    if (/^[-A-Za-z0-9]+$/.test(name)) continue;
    const why =
      "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
    problems.push(invalidValue(`${at}.httpHeaders`, name, why));
  }
  return problems;
}

const handlers = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const;

function handlerProblems(handler: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const given = handlers.filter((key) => handler[key] !== undefined);
  for (const [i, key] of given.entries()) {
    const here = `${at}.${key}`;
    const { [key]: action = {} } = handler as Record<string, Loose>;
    if (i > 0) problems.push(forbiddenValue(here, "may not specify more than 1 handler type"));
    else if (key === "exec" && (action.command ?? []).length === 0)
      problems.push(requiredValue(`${here}.command`));
    else if (key === "httpGet") problems.push(...httpProblems(action, here));
    else if (key === "tcpSocket" && typeof action.port === "string") {
      problems.push(...portNameProblems(action.port, `${here}.port`));
    } else if (key === "tcpSocket" || key === "grpc")
      problems.push(...portNumberProblems(action.port, `${here}.port`));
  }
  if (given.length === 0) problems.push(requiredValue(at, "must specify a handler type"));
  return problems;
}

const counts = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
];

function probeProblems(probe: Loose | undefined, at: string, once: boolean): FieldProblem[] {
  if (probe === undefined) return [];
  const problems = handlerProblems(probe, at);
  for (const key of counts) {
    if (probe[key] < 0) {
      problems.push(invalidValue(`${at}.${key}`, probe[key], "must be greater than or equal to 0"));
    }
  }
  if (once && probe.successThreshold !== 1) {
    problems.push(invalidValue(`${at}.successThreshold`, probe.successThreshold, "must be 1"));
  }
  return problems;
}

function mountProblems(container: Loose, at: string, { volumes }: ContainerContext): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const devices: readonly Loose[] = container.volumeDevices ?? [];
  const deviceNames = new Set(devices.map((device) => device.name));
  const devicePaths = new Set(devices.map((device) => device.devicePath));
  const paths = new Set<string>();
  for (const [i, mount] of ((container.volumeMounts ?? []) as readonly Loose[]).entries()) {
    const here = `${at}[${i}]`;
    const { name = "", mountPath = "", subPath, subPathExpr, mountPropagation } = mount;
    spendTime();
    if (name === "") problems.push(requiredValue(`${here}.name`));
    if (!volumes.has(name)) problems.push(notFoundValue(`${here}.name`, name));
    if (mountPath === "") problems.push(requiredValue(`${here}.mountPath`));
    if (paths.has(mountPath)) problems.push(invalidValue(`${here}.mountPath`, mountPath, "must be unique"));
    paths.add(mountPath);
    if (deviceNames.has(name)) {
      problems.push(invalidValue(`${here}.name`, name, "must not already exist in volumeDevices"));
    }
    if (devicePaths.has(mountPath)) {
      const why = "must not already exist as a path in volumeDevices";
      problems.push(invalidValue(`${here}.mountPath`, mountPath, why));
    }
    // The reference leaves the index out from here on.
    if (subPath) problems.push(...descendingPathProblems(subPath, `${at}.subPath`));
    if (subPathExpr) {
      if (subPath) {
        const why = "subPathExpr and subPath are mutually exclusive";
        problems.push(invalidValue(`${here}.subPathExpr`, subPathExpr, why));
      }
      problems.push(...descendingPathProblems(subPathExpr, `${at}.subPathExpr`));
    }
    if (mountPropagation !== undefined) {
      problems.push(...propagationProblems(mountPropagation, container, `${at}.mountPropagation`));
    }
  }
  return problems;
}

function descendingPathProblems(path: string, at: string): FieldProblem[] {
  const absolute = path.startsWith("/") ? [invalidValue(at, path, "must be a relative path")] : [];
  return [...absolute, ...backstepProblems(path, at)];
}

function propagationProblems(value: string, { securityContext }: Loose, at: string): FieldProblem[] {
  const problems = propagations.includes(value) ? [] : [unsupportedValue(at, value, propagations)];
  if (value === "Bidirectional" && securityContext?.privileged !== true) {
    const why = "Bidirectional mount propagation is available only to privileged containers";
    problems.push(forbiddenValue(at, why));
  }
  return problems;
}

function deviceProblems(container: Loose, at: string, { volumes }: ContainerContext): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const mounts: readonly Loose[] = container.volumeMounts ?? [];
  const mountNames = new Set(mounts.map((mount) => mount.name));
  const mountPaths = new Set(mounts.map((mount) => mount.mountPath));
  const seen = { names: new Set<string>(), paths: new Set<string>() };
  for (const [i, { name = "", devicePath = "" }] of ((container.volumeDevices ?? []) as Loose[]).entries()) {
    const here = `${at}[${i}]`;
    if (name === "") problems.push(requiredValue(`${here}.name`));
    spendTime();
    if (seen.names.has(name)) problems.push(invalidValue(`${here}.name`, name, "must be unique"));
    const volume = volumes.get(name);
    if (volume === undefined) problems.push(notFoundValue(`${here}.name`, name));
    else if (volume.persistentVolumeClaim === undefined && volume.ephemeral === undefined) {
      const why = "can only use volume source type of PersistentVolumeClaim for block mode";
      problems.push(invalidValue(`${here}.name`, name, why));
    }
    if (devicePath === "") problems.push(requiredValue(`${here}.devicePath`));
    else if (seen.paths.has(devicePath)) {
      problems.push(invalidValue(`${here}.devicePath`, devicePath, "must be unique"));
    } else problems.push(...backstepProblems(devicePath, `${here}.devicePath`));
    if (mountNames.has(name)) {
      problems.push(invalidValue(`${here}.name`, name, "must not already exist in volumeMounts"));
    }
    if (mountPaths.has(devicePath)) {
      const why = "must not already exist as a path in volumeMounts";
      problems.push(invalidValue(`${here}.devicePath`, devicePath, why));
    }
    seen.names.add(name);
    seen.paths.add(devicePath);
  }
  return problems;
}

/** Users and groups of processes. */
export function identityProblems(value: unknown, at: string): FieldProblem[] {
  return typeof value === "number" && (value < 0 || value > 2_147_483_647)
    ? [invalidValue(at, value, "must be between 0 and 2147483647, inclusive")]
    : [];
}

function securityProblems(context: Loose | undefined, at: string): FieldProblem[] {
  if (context === undefined) return [];
  const problems = identityProblems(context.runAsUser, `${at}.runAsUser`);
  problems.push(...identityProblems(context.runAsGroup, `${at}.runAsGroup`));
  if (context.allowPrivilegeEscalation !== false) return problems;
  if (context.privileged === true) {
    const why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
    problems.push(invalidValue(at, context, why));
  }
  if ((context.capabilities?.add ?? []).includes("CAP_SYS_ADMIN")) {
    const why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
    problems.push(invalidValue(at, context, why));
  }
  return problems;
}

function lifecycleProblems(lifecycle: Loose | undefined, at: string): FieldProblem[] {
  return ["postStart", "preStop"].flatMap((key) =>
    lifecycle?.[key] === undefined ? [] : handlerProblems(lifecycle[key], `${at}.${key}`),
  );
}

function messagePolicyProblems({ terminationMessagePolicy: policy = "" }: Loose, at: string): FieldProblem[] {
  const rule = "must be 'File' or 'FallbackToLogsOnError'";
  if (policy === "") return [requiredValue(at, rule)];
  return policy === "File" || policy === "FallbackToLogsOnError" ? [] : [invalidValue(at, policy, rule)];
}

function pullPolicyProblems({ imagePullPolicy: policy = "" }: Loose, at: string): FieldProblem[] {
  if (policy === "") return [requiredValue(at)];
  return pullPolicies.includes(policy) ? [] : [unsupportedValue(at, policy, pullPolicies)];
}

/** Problems of one container. `names` holds those of the containers before it. */
export function containerProblems(
  container: Loose,
  at: string,
  names: Set<string>,
  context: ContainerContext,
): FieldProblem[] {
  const { name = "" } = container;
  const problems: FieldProblem[] =
    name === ""
      ? [requiredValue(`${at}.name`)]
      : labelProblems(name).map((why) => invalidValue(`${at}.name`, name, why));
  if (names.has(name)) problems.push(duplicateValue(`${at}.name`, name));
  names.add(name);
  if (!container.image) problems.push(requiredValue(`${at}.image`));
  problems.push(...lifecycleProblems(container.lifecycle, `${at}.lifecycle`));
  problems.push(...probeProblems(container.livenessProbe, `${at}.livenessProbe`, true));
  problems.push(...probeProblems(container.readinessProbe, `${at}.readinessProbe`, false));
  problems.push(...probeProblems(container.startupProbe, `${at}.startupProbe`, true));
  problems.push(...messagePolicyProblems(container, `${at}.terminationMessagePolicy`));
  const portNames = new Set<string>();
  for (const [i, port] of ((container.ports ?? []) as readonly Loose[]).entries()) {
    problems.push(...portProblems(port, `${at}.ports[${i}]`, portNames));
  }
  problems.push(...envProblems(container.env ?? [], `${at}.env`));
  problems.push(...envFromProblems(container.envFrom ?? [], `${at}.envFrom`));
  problems.push(...mountProblems(container, `${at}.volumeMounts`, context));
  problems.push(...deviceProblems(container, `${at}.volumeDevices`, context));
  problems.push(...pullPolicyProblems(container, `${at}.imagePullPolicy`));
  problems.push(...resourceProblems(container.resources, `${at}.resources`));
  problems.push(...securityProblems(container.securityContext, `${at}.securityContext`));
  if (context.init) problems.push(...initProblems(container, at));
  else if (container.restartPolicy !== undefined) {
    problems.push(forbiddenValue(`${at}.restartPolicy`, "may not be set for non-init containers"));
  }
  return problems;
}

/** Init containers that end must not have fields for running containers; sidecars (restartPolicy Always) may. */
function initProblems(container: Loose, at: string): FieldProblem[] {
  const { restartPolicy } = container;
  if (restartPolicy === "Always") return [];
  const problems: FieldProblem[] = [];
  if (restartPolicy !== undefined) {
    problems.push(unsupportedValue(`${at}.restartPolicy`, restartPolicy, ["Always"]));
  }
  for (const key of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"]) {
    if (container[key] === undefined) continue;
    const why = "may not be set for init containers without restartPolicy=Always";
    problems.push(forbiddenValue(`${at}.${key}`, why));
  }
  return problems;
}

/** Two containers of a pod cannot have one port of the node. */
export function hostPortConflicts(containers: readonly Loose[], at: string): FieldProblem[] {
  const taken = new Set<string>();
  return containers.flatMap((container, i) =>
    ((container.ports ?? []) as readonly Loose[]).flatMap(({ hostPort, hostIP = "", protocol }, j) => {
      if (!hostPort) return [];
      const place = `${protocol}/${hostIP}/${hostPort}`;
      if (taken.has(place)) return [duplicateValue(`${at}[${i}].ports[${j}].hostPort`, place)];
      taken.add(place);
      return [];
    }),
  );
}
