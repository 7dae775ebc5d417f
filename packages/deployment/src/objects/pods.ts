/** The containers and pods of a deployment. What a container may do to its machine is the least that it needs. */

import type { DeploymentPlan } from "../deployment-plan.ts";
import { accountOf } from "./access-objects.ts";
import { type DeployedPart, labelsOf } from "./labels.ts";
import {
  amounts,
  apart,
  confined,
  fromField,
  podIdentity,
  probe,
  rootPod,
  unprivilegedPod,
} from "./pod-parts.ts";
import {
  allSidecarsArgs,
  livenessArgs,
  nodeProvisionerArgs,
  portOf,
  ports,
  registrarArgs,
  sidecarArgs,
  snapshotControllerArgs,
  socketPath,
} from "./sidecar-args.ts";

/** Members of a container, loosely typed: the API server of the tests validates them. */
export type Container = Readonly<Record<string, unknown>> & { readonly name: string };

const socketDir = { name: "socket-dir", mountPath: "/csi" };
/** A third-party driver may need a writable directory although its image is read-only. */
const tmpDir = { name: "tmp-dir", mountPath: "/tmp" };

/** The pod of the controller part: the driver and its sidecars share a socket, and a user who owns it. */
export function controllerPod(plan: DeploymentPlan): object {
  return pod(plan, "controller", {
    priorityClassName: "system-cluster-critical",
    securityContext: plan.options.controllerRoot === true ? rootPod : unprivilegedPod,
    ...(Object.keys(plan.nodeSelector).length === 0 ? {} : { nodeSelector: { ...plan.nodeSelector } }),
    ...(plan.tolerations.length === 0 ? {} : { tolerations: plan.tolerations.map((t) => ({ ...t })) }),
    ...(plan.controller === "deployment" && plan.replicas > 1
      ? { affinity: apart(labelsOf(plan, "controller")) }
      : {}),
    containers: [
      driverContainer(plan, "controller", confined),
      ...controllerSidecarContainers(plan, confined),
      livenessContainer(plan, confined),
    ],
    volumes: [
      { name: socketDir.name, emptyDir: {} },
      { name: tmpDir.name, emptyDir: {} },
    ],
  });
}

/** The pod of a node; in the all-in-one form it holds the controller's sidecars as well. */
export function nodePod(plan: DeploymentPlan): object {
  const { kubeletDir, driver } = plan;
  const allInOne = plan.controller === "daemonset";
  const asksApi = allInOne || plan.nodeDeployment;
  return pod(plan, "node", {
    ...(asksApi ? {} : { automountServiceAccountToken: false }),
    priorityClassName: "system-node-critical",
    securityContext: rootPod,
    nodeSelector: { "kubernetes.io/os": "linux" },
    // Wherever pods run, their volumes must be mounted.
    tolerations: [{ operator: "Exists" }],
    containers: [
      driverContainer(plan, "node", { privileged: true }),
      {
        name: "node-driver-registrar",
        ...longshore(plan, registrarArgs(plan), confined),
        ports: [{ name: "registrar", containerPort: ports.registrar }],
        livenessProbe: probe("/healthz", "registrar"),
        volumeMounts: [socketDir, { name: "registration-dir", mountPath: "/registration" }],
      },
      ...(plan.nodeDeployment
        ? [
            {
              name: "provisioner",
              ...longshore(plan, nodeProvisionerArgs(plan), confined),
              env: [...podIdentity, fromField("NODE_NAME", "spec.nodeName")],
              ports: [{ name: "sidecars", containerPort: ports.sidecars }],
              volumeMounts: [socketDir],
            },
          ]
        : []),
      ...(allInOne ? controllerSidecarContainers(plan, confined) : []),
      livenessContainer(plan, confined),
    ],
    volumes: [
      {
        name: socketDir.name,
        hostPath: { path: `${kubeletDir}/plugins/${driver}`, type: "DirectoryOrCreate" },
      },
      // The kubelet has made these two: where one is missing, `kubeletDir` is not its directory.
      { name: "registration-dir", hostPath: { path: `${kubeletDir}/plugins_registry`, type: "Directory" } },
      { name: "kubelet-dir", hostPath: { path: kubeletDir, type: "Directory" } },
      ...(plan.options.hostDevices === true
        ? [{ name: "dev-dir", hostPath: { path: "/dev", type: "Directory" } }]
        : []),
    ],
  });
}

/** The pod of the snapshot controller, which talks to the API server only. */
export function snapshotControllerPod(plan: DeploymentPlan): object {
  return pod(plan, "snapshot-controller", {
    priorityClassName: "system-cluster-critical",
    securityContext: unprivilegedPod,
    containers: [
      {
        name: "snapshot-controller",
        ...longshore(plan, snapshotControllerArgs(plan), confined),
        env: podIdentity,
        ports: [{ name: "sidecars", containerPort: ports.sidecars }],
        livenessProbe: probe("/healthz/leader-election", "sidecars"),
      },
    ],
  });
}

function pod(plan: DeploymentPlan, part: DeployedPart, spec: Readonly<Record<string, unknown>>): object {
  const { imagePullSecrets = [] } = plan.options;
  return {
    metadata: { labels: labelsOf(plan, part) },
    spec: {
      serviceAccountName: accountOf(plan, part).name,
      // The account itself mounts no token: what asks the API server says so.
      automountServiceAccountToken: true,
      ...(imagePullSecrets.length === 0
        ? {}
        : { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
      ...spec,
    },
  };
}

function driverContainer(
  plan: DeploymentPlan,
  part: "controller" | "node",
  securityContext: object,
): Container {
  const {
    driverArgs = [],
    controllerArgs = [],
    nodeArgs = [],
    credentialsSecret,
    hostDevices,
  } = plan.options;
  const isController = part === "controller" || plan.controller === "daemonset";
  const args = [...driverArgs, ...(part === "controller" ? controllerArgs : nodeArgs)];
  return {
    name: "driver",
    image: plan.image,
    ...pullPolicy(plan),
    ...(args.length === 0 ? {} : { args }),
    env: [{ name: "CSI_ENDPOINT", value: `unix://${socketPath}` }, fromField("NODE_NAME", "spec.nodeName")],
    ...(credentialsSecret === undefined || !isController
      ? {}
      : { envFrom: [{ secretRef: { name: credentialsSecret } }] }),
    ports: [{ name: "healthz", containerPort: ports.liveness }],
    livenessProbe: { ...probe("/healthz", "healthz"), failureThreshold: 5 },
    resources: amounts(plan.resources.driver),
    securityContext,
    volumeMounts: [
      socketDir,
      ...(part === "node"
        ? [
            // What it mounts there is seen by the kubelet and by pods.
            { name: "kubelet-dir", mountPath: plan.kubeletDir, mountPropagation: "Bidirectional" },
            ...(hostDevices === true ? [{ name: "dev-dir", mountPath: "/dev" }] : []),
          ]
        : [tmpDir]),
    ],
  };
}

function controllerSidecarContainers(plan: DeploymentPlan, securityContext: object): readonly Container[] {
  const healthPath = plan.leaderElection ? "/healthz/leader-election" : undefined;
  const withProbe = (port: string) =>
    healthPath === undefined ? {} : { livenessProbe: probe(healthPath, port) };
  if (!plan.separateSidecars) {
    return [
      {
        name: "sidecars",
        ...longshore(plan, allSidecarsArgs(plan), securityContext),
        env: podIdentity,
        ports: [{ name: "sidecars", containerPort: ports.sidecars }],
        ...withProbe("sidecars"),
        volumeMounts: [socketDir],
      },
    ];
  }
  return plan.controllerSidecars.map((sidecar) => ({
    name: sidecar,
    ...longshore(plan, sidecarArgs(plan, sidecar), securityContext),
    env: podIdentity,
    ports: [{ name: sidecar, containerPort: portOf(plan, sidecar) }],
    ...withProbe(sidecar),
    volumeMounts: [socketDir],
  }));
}

/** The driver's own health, which its container is restarted for. */
function livenessContainer(plan: DeploymentPlan, securityContext: object): Container {
  return {
    name: "liveness-probe",
    ...longshore(plan, livenessArgs(), securityContext),
    volumeMounts: [socketDir],
  };
}

function longshore(plan: DeploymentPlan, args: readonly string[], securityContext: object): object {
  return {
    image: plan.sidecarImage,
    ...pullPolicy(plan),
    args: [...args],
    resources: amounts(plan.resources.sidecar),
    securityContext,
  };
}

function pullPolicy({ options: { imagePullPolicy } }: DeploymentPlan): object {
  return imagePullPolicy === undefined ? {} : { imagePullPolicy };
}
