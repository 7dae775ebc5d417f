/** The spec of a pod or a pod template: what is filled in, and what must hold (core/v1 defaults.go, validation.go). */
import {
  duplicateValue,
  type FieldProblem,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import { labelProblems, subdomainProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import { containerProblems, hostPortConflicts, identityProblems } from "./container-problems.ts";
import { isAddress } from "./endpoints.ts";
import { hostNetworkProblems } from "./host-ports.ts";
import { labelsProblems } from "./label-selector-problems.ts";
import { resourceProblems } from "./resource-problems.ts";
import { affinityProblems, spreadProblems, tolerationProblems } from "./scheduling-rules.ts";
import {
  canonicalQuantities,
  type Loose,
  mapItems,
  subdomainValue,
  withDefaults,
  withMember,
} from "./shaping.ts";
import { podSourceProblems } from "./source-rules.ts";
import { volumeDefaults } from "./volume-defaults.ts";

/** What a template's spec gets. */
export function podSpecDefaults(spec: Loose): Loose {
  let result = withDefaults(spec, {
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    securityContext: {},
    schedulerName: "default-scheduler",
  });
  // `serviceAccount` is the old name of the same: clients that read only that one must find it.
  if (result.serviceAccountName && result.serviceAccount !== result.serviceAccountName) {
    result = { ...result, serviceAccount: result.serviceAccountName };
  }
  result = withMember(result, "volumes", (volumes) =>
    mapItems(volumes, (volume) => volumeDefaults(hasSource(volume) ? volume : { ...volume, emptyDir: {} })),
  );
  result = withMember(result, "overhead", canonicalQuantities);
  result = withMember(result, "affinity", (affinity) =>
    withMember(affinity, "nodeAffinity", (node) =>
      withMember(node, "preferredDuringSchedulingIgnoredDuringExecution", (terms) =>
        mapItems(terms, (term) => withDefaults(term, { preference: {} })),
      ),
    ),
  );
  for (const list of ["containers", "initContainers"]) {
    result = withMember(result, list, (containers) => mapItems(containers, containerDefaults));
  }
  return result;
}

/** A volume that names no source is an empty directory. */
function hasSource(volume: Loose): boolean {
  return Object.keys(volume).some((key) => key !== "name" && volume[key] !== undefined);
}

const imagePattern =
  /^(?:[a-zA-Z0-9][-a-zA-Z0-9.]*(?::\d+)?\/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::([\w][\w.-]{0,127}))?(@[^@]+)?$/;

/** True for an image that may change under its name: tagged `latest`, or not tagged at all. */
function isLatest(image: string): boolean {
  const match = imagePattern.exec(image);
  // A plain name is one of the library of the default registry, and its whole has at most 255 characters.
  const whole = image.includes("/") ? image : `docker.io/library/${image}`;
  if (match === null || whole.length > 255) return false;
  const [, tag, digest] = match;
  return tag === undefined ? digest === undefined : tag === "latest";
}

function containerDefaults(container: Loose): Loose {
  let result = withDefaults(container, {
    resources: {},
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: isLatest(String(container.image ?? "")) ? "Always" : "IfNotPresent",
  });
  result = withMember(result, "ports", (ports) =>
    mapItems(ports, (port) => withDefaults(port, { protocol: "TCP" })),
  );
  result = withMember(result, "env", (env) =>
    mapItems(env, (e) =>
      withMember(e, "valueFrom", (from) =>
        withMember(
          withMember(from, "fieldRef", (ref) => withDefaults(ref, { apiVersion: "v1" })),
          "resourceFieldRef",
          (ref) => withDefaults(ref, { divisor: "0" }),
        ),
      ),
    ),
  );
  result = withMember(result, "resources", resourceDefaults);
  for (const probe of ["livenessProbe", "readinessProbe", "startupProbe"]) {
    result = withMember(result, probe, probeDefaults);
  }
  return result;
}

function resourceDefaults(resources: Loose): Loose {
  return withMember(withMember(resources, "limits", canonicalQuantities), "requests", canonicalQuantities);
}

/** What is limited and not asked for is asked for in full: by pods, not yet by what pods are made from. */
export function requestDefaults(spec: Loose): Loose {
  return ["containers", "initContainers"].reduce(
    (result, list) => withMember(result, list, (containers) => mapItems(containers, withRequests)),
    spec,
  );
}

function withRequests(container: Loose): Loose {
  return withMember(container, "resources", (resources) => {
    if (resources.limits === undefined) return resources;
    const requests = withDefaults(resources.requests, resources.limits);
    return requests === resources.requests ? resources : { ...resources, requests };
  });
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

const restartPolicies = ["Always", "OnFailure", "Never"];
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const groupPolicies = ["Always", "OnRootMismatch"];

/** The volumes that are sound, and what is wrong with the others. */
function volumesOf(
  spec: Loose,
  at: string,
): { readonly sound: Map<string, Loose>; readonly problems: FieldProblem[] } {
  const sound = new Map<string, Loose>();
  const problems: FieldProblem[] = [];
  for (const [i, volume] of ((spec.volumes ?? []) as readonly Loose[]).entries()) {
    spendTime();
    const here = `${at}[${i}]`;
    const { name = "" } = volume;
    const context = { persistent: false, name, secretsAreSubdomains: true };
    const wrong = podSourceProblems(volume, here, context);
    if (name === "") wrong.push(requiredValue(`${here}.name`));
    else wrong.push(...labelProblems(name).map((why) => invalidValue(`${here}.name`, name, why)));
    if (sound.has(name)) wrong.push(duplicateValue(`${here}.name`, name));
    if (wrong.length === 0) sound.set(name, volume);
    problems.push(...wrong);
  }
  return { sound, problems };
}

/** Problems of a pod's or template's spec, in the order of the reference (ValidatePodSpec). */
export function podSpecProblems(spec: Loose, at: string): FieldProblem[] {
  const { sound: volumes, problems } = volumesOf(spec, `${at}.volumes`);
  const containers: readonly Loose[] = spec.containers ?? [];
  if (containers.length === 0) problems.push(requiredValue(`${at}.containers`));
  const names = new Set<string>();
  const context = { volumes, init: false };
  for (const [i, container] of containers.entries()) {
    spendTime();
    problems.push(...containerProblems(container, `${at}.containers[${i}]`, names, context));
  }
  problems.push(...hostPortConflicts(containers, `${at}.containers`));
  for (const [i, container] of ((spec.initContainers ?? []) as readonly Loose[]).entries()) {
    const here = `${at}.initContainers[${i}]`;
    // The same `names`: an init container must not be called like a container either.
    problems.push(...containerProblems(container, here, names, { ...context, init: true }));
  }
  problems.push(...policyProblems(spec, at));
  problems.push(...labelsProblems(spec.nodeSelector, `${at}.nodeSelector`));
  problems.push(...hostNetworkProblems(spec, at));
  problems.push(...podSecurityProblems(spec.securityContext ?? {}, `${at}.securityContext`));
  problems.push(...affinityProblems(spec.affinity, `${at}.affinity`));
  problems.push(...spreadProblems(spec.topologySpreadConstraints ?? [], `${at}.topologySpreadConstraints`));
  problems.push(...identityOfPodProblems(spec, at));
  problems.push(...tolerationProblems(spec.tolerations ?? [], `${at}.tolerations`));
  for (const { ip = "", hostnames = [] } of (spec.hostAliases ?? []) as readonly Loose[]) {
    if (!isAddress(ip)) problems.push(invalidValue(`${at}.hostAliases.ip`, ip, "must be valid IP address"));
    for (const host of hostnames as readonly string[]) {
      problems.push(
        ...subdomainProblems(host).map((why) => invalidValue(`${at}.hostAliases.hostnames`, host, why)),
      );
    }
  }
  if (spec.priorityClassName) {
    problems.push(...subdomainValue(`${at}.priorityClassName`, spec.priorityClassName));
  }
  if (spec.runtimeClassName !== undefined) {
    problems.push(...subdomainValue(`${at}.runtimeClassName`, spec.runtimeClassName));
  }
  // As the limits of a container are: the path in the problem says so, too.
  if (spec.overhead !== undefined) {
    problems.push(...resourceProblems({ limits: spec.overhead }, `${at}.overhead`));
  }
  return problems;
}

function policyProblems({ restartPolicy = "", dnsPolicy = "" }: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (restartPolicy === "") problems.push(requiredValue(`${at}.restartPolicy`));
  else if (!restartPolicies.includes(restartPolicy)) {
    problems.push(unsupportedValue(`${at}.restartPolicy`, restartPolicy, restartPolicies));
  }
  if (dnsPolicy === "") problems.push(requiredValue(`${at}.dnsPolicy`));
  else if (!dnsPolicies.includes(dnsPolicy)) {
    problems.push(unsupportedValue(`${at}.dnsPolicy`, dnsPolicy, dnsPolicies));
  }
  return problems;
}

function podSecurityProblems(context: Loose, at: string): FieldProblem[] {
  const problems = identityProblems(context.fsGroup, `${at}.fsGroup`);
  problems.push(...identityProblems(context.runAsUser, `${at}.runAsUser`));
  problems.push(...identityProblems(context.runAsGroup, `${at}.runAsGroup`));
  for (const [i, group] of ((context.supplementalGroups ?? []) as readonly number[]).entries()) {
    spendTime();
    problems.push(...identityProblems(group, `${at}.supplementalGroups[${i}]`));
  }
  const { fsGroupChangePolicy: policy } = context;
  if (policy !== undefined && !groupPolicies.includes(policy)) {
    problems.push(unsupportedValue(`${at}.fsGroupChangePolicy`, policy, groupPolicies));
  }
  return problems;
}

const deadlineSecondsMax = 2 ** 31 - 1;

/** Who the pod is and where: its account, its node, its names, and how long it may be. */
function identityOfPodProblems(spec: Loose, at: string): FieldProblem[] {
  const { serviceAccountName, nodeName, activeDeadlineSeconds: seconds, hostname, subdomain } = spec;
  const problems: FieldProblem[] = [];
  if (serviceAccountName) problems.push(...subdomainValue(`${at}.serviceAccountName`, serviceAccountName));
  if (nodeName) problems.push(...subdomainValue(`${at}.nodeName`, nodeName));
  if (seconds !== undefined && (seconds < 1 || seconds > deadlineSecondsMax)) {
    const why = `must be between 1 and ${deadlineSecondsMax}, inclusive`;
    problems.push(invalidValue(`${at}.activeDeadlineSeconds`, seconds, why));
  }
  for (const [key, value] of Object.entries({ hostname, subdomain })) {
    if (value) problems.push(...labelProblems(value).map((why) => invalidValue(`${at}.${key}`, value, why)));
  }
  return problems;
}
