/** The command lines of Longshore's containers: flags have the names of the reference sidecars (docs/behaviour/sidecars.md 1-8). */
import { type ControllerSidecar, controllerSidecars, type DeploymentPlan } from "../deployment-plan.ts";

/** The driver's socket, as every container of its pod sees it. */
export const socketPath = "/csi/csi.sock";
/** Ports inside a pod. */
export const ports = { sidecars: 8080, liveness: 9808, registrar: 9809 } as const;

const csiAddress = `--csi-address=${socketPath}`;

/** Each sidecar in a process of its own listens on a port of its own, in this order from {@link ports}.sidecars on. */
export function portOf(plan: DeploymentPlan, sidecar: ControllerSidecar): number {
  return ports.sidecars + plan.controllerSidecars.indexOf(sidecar);
}

/** `longshore run sidecars`. */
export function allSidecarsArgs(plan: DeploymentPlan): readonly string[] {
  return [
    "run",
    "sidecars",
    csiAddress,
    ...sidecarSwitches(plan),
    ...election(plan),
    `--http-endpoint=:${ports.sidecars}`,
    ...(plan.controllerSidecars.includes("provisioner") ? provisionerArgs(plan) : []),
    ...gateArgs(plan, plan.controllerSidecars),
    ...(plan.options.sidecarArgs ?? []),
  ];
}

/** `longshore run provisioner`, and so on. */
export function sidecarArgs(plan: DeploymentPlan, sidecar: ControllerSidecar): readonly string[] {
  return [
    "run",
    sidecar,
    csiAddress,
    ...election(plan),
    `--http-endpoint=:${portOf(plan, sidecar)}`,
    ...(sidecar === "provisioner" ? provisionerArgs(plan) : []),
    ...gateArgs(plan, [sidecar]),
  ];
}

/** The provisioner of one node. */
export function nodeProvisionerArgs(plan: DeploymentPlan): readonly string[] {
  return [
    "run",
    "provisioner",
    csiAddress,
    "--node-deployment",
    `--http-endpoint=:${ports.sidecars}`,
    ...provisionerArgs(plan),
    ...gateArgs(plan, ["provisioner"]),
  ];
}

/** `longshore run node-driver-registrar`. */
export function registrarArgs(plan: DeploymentPlan): readonly string[] {
  return [
    "run",
    "node-driver-registrar",
    csiAddress,
    `--kubelet-registration-path=${plan.kubeletDir}/plugins/${plan.driver}/csi.sock`,
    "--plugin-registration-path=/registration",
    `--http-endpoint=:${ports.registrar}`,
  ];
}

/** `longshore run liveness-probe`. */
export function livenessArgs(): readonly string[] {
  return ["run", "liveness-probe", csiAddress, `--http-endpoint=:${ports.liveness}`];
}

/** `longshore run snapshot-controller`. */
export function snapshotControllerArgs(plan: DeploymentPlan): readonly string[] {
  return [
    "run",
    "snapshot-controller",
    "--leader-election",
    "--leader-election-namespace=$(POD_NAMESPACE)",
    `--http-endpoint=:${ports.sidecars}`,
    ...gateArgs(plan, ["snapshotter"]),
  ];
}

/** Which sidecars of the one process do not run: all do, unless switched off. */
function sidecarSwitches(plan: DeploymentPlan): readonly string[] {
  return controllerSidecars
    .filter((sidecar) => !plan.controllerSidecars.includes(sidecar))
    .map((sidecar) => `--${sidecar}=false`);
}

function election({ leaderElection }: DeploymentPlan): readonly string[] {
  return leaderElection ? ["--leader-election", "--leader-election-namespace=$(POD_NAMESPACE)"] : [];
}

/** Gates differ from their defaults only where a right depends on it: what may not be read must not be requested. */
function gateArgs({ needs }: DeploymentPlan, sidecars: readonly ControllerSidecar[]): readonly string[] {
  const modifies = sidecars.includes("provisioner") || sidecars.includes("resizer");
  const gates = [
    ...(modifies && !needs.modify ? ["VolumeAttributesClass=false"] : []),
    ...(sidecars.includes("snapshotter") && needs.groupSnapshot ? ["CSIVolumeGroupSnapshot=true"] : []),
  ];
  return gates.length === 0 ? [] : [`--feature-gates=${gates.join(",")}`];
}

function provisionerArgs(plan: DeploymentPlan): readonly string[] {
  return [...capacityArgs(plan), ...(plan.needs.snapshot ? [] : ["--snapshot-orphan-sweep-interval=0s"])];
}

function capacityArgs({ needs }: DeploymentPlan): readonly string[] {
  return needs.capacity ? ["--enable-capacity", `--capacity-ownerref-level=${needs.owners.length}`] : [];
}
