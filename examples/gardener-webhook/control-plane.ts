/**
 * The Deployments of a shoot's control plane and the unit of its kubelets, as the phase of its migration has them. Pure: the same
 * object in the same phase is left as it is, so an empty patch changes nothing but what is due.
 * Source: docs/behaviour/migration-controllers.md A7.
 */
import { listOf, withFlag, withGates, withList } from "./flags.ts";
import { gatesOfPhase, ownGates, type ShootState } from "./migration-phase.ts";
import type { Provider } from "./providers.ts";

/** One operation of a JSON patch (RFC 6902). */
export interface PatchOperation {
  readonly op: "add" | "replace";
  readonly path: string;
  readonly value: unknown;
}

/** An object that cannot be configured; the message names the field. */
export class ComponentError extends Error {
  override readonly name = "ComponentError";
}

type Arguments = readonly string[];

const cloudConfig = "/etc/kubernetes/cloudprovider/cloudprovider.conf";
const labelAdmission = "PersistentVolumeLabel";

/** What the phase asks of each component, beside its gates. */
const cloudFlags: Readonly<
  Record<string, (args: Arguments, isComplete: boolean, provider: Provider) => Arguments>
> = {
  "kube-apiserver": (args, isComplete, { cloudProvider }) => {
    const plugins = listOf(args, "enable-admission-plugins").filter((name) => name !== labelAdmission);
    const wanted = isComplete ? plugins : [...plugins, labelAdmission];
    const flags = withCloud(args, isComplete ? undefined : cloudProvider);
    return withList(flags, "enable-admission-plugins", wanted);
  },
  "kube-controller-manager": (args, isComplete, { cloudProvider }) =>
    withFlag(
      withCloud(args, isComplete ? undefined : "external"),
      "external-cloud-volume-plugin",
      isComplete ? undefined : cloudProvider,
    ),
  "kube-scheduler": (args) => args,
};

function withCloud(args: Arguments, cloudProvider: string | undefined): Arguments {
  const named = withFlag(args, "cloud-provider", cloudProvider);
  return withFlag(named, "cloud-config", cloudProvider === undefined ? undefined : cloudConfig);
}

/** Names of the Deployments that the webhook writes. */
export const componentNames: readonly string[] = Object.keys(cloudFlags);

interface Container {
  readonly name?: string;
  readonly command?: Arguments;
  readonly args?: Arguments;
}

/** A Deployment, as far as the webhook reads it. */
export interface ComponentDeployment {
  readonly metadata?: { readonly name?: string };
  readonly spec?: { readonly template?: { readonly spec?: { readonly containers?: readonly Container[] } } };
}

/** The patch of a Deployment of the control plane. @throws ComponentError when it has no container of its own name */
export function patchDeployment(
  deployment: ComponentDeployment,
  state: ShootState,
  provider: Provider,
): readonly PatchOperation[] {
  const name = deployment.metadata?.name ?? "";
  const change = cloudFlags[name];
  if (change === undefined) return [];
  const containers = deployment.spec?.template?.spec?.containers ?? [];
  const index = containers.findIndex((one) => one.name === name);
  const container = containers[index];
  if (container === undefined) {
    throw new ComponentError(`spec.template.spec.containers: no container is named ${name}: name it so`);
  }
  // Gardener gives all in the command; others have the program there, and its flags in args.
  const isCommand = container.command?.some((arg) => arg.startsWith("--")) ?? false;
  const before = (isCommand ? container.command : container.args) ?? [];
  const after = change(before, state.phase === "complete", provider);
  const gates = gatesOfPhase(state.phase, state.kubernetesVersion, provider);
  const value = withGates(after, ownGates(provider), gates);
  const path = `/spec/template/spec/containers/${index}/${isCommand ? "command" : "args"}`;
  // Adding a member that is there replaces it.
  return isSame(before, value) ? [] : [{ op: "add", path, value }];
}

/** An OperatingSystemConfig, as far as the webhook reads it: what new machines of a pool are given. */
export interface MachineConfig {
  readonly spec?: {
    readonly units?: readonly { readonly name?: string; readonly content?: string }[];
  };
}

const kubeletUnit = "kubelet.service";

/**
 * The patch of an OperatingSystemConfig. New machines come up with all gates as soon as the shoot uses CSI: each is drained
 * before it replaces an old one. @throws ComponentError when the unit starts nothing
 */
export function patchMachineConfig(
  config: MachineConfig,
  state: ShootState,
  provider: Provider,
): readonly PatchOperation[] {
  const units = config.spec?.units ?? [];
  const index = units.findIndex(({ name }) => name === kubeletUnit);
  const content = units[index]?.content;
  if (content === undefined) return [];
  const isCsi = state.phase !== "in-tree";
  const gates = gatesOfPhase(isCsi ? "complete" : "in-tree", state.kubernetesVersion, provider);
  const value = withKubeletArguments(content, (args) =>
    withGates(
      withFlag(args, "cloud-provider", isCsi ? "external" : provider.cloudProvider),
      ownGates(provider),
      gates,
    ),
  );
  return value === content ? [] : [{ op: "replace", path: `/spec/units/${index}/content`, value }];
}

/** `ExecStart=` with its continuation lines. */
const execStart = /^ExecStart=(?:.*\\\n)*.*$/m;

function withKubeletArguments(unit: string, change: (args: Arguments) => Arguments): string {
  const line = execStart.exec(unit)?.[0];
  if (line === undefined) throw new ComponentError(`spec.units: ${kubeletUnit} has no ExecStart: add one`);
  const [program = "", ...args] = line
    .slice("ExecStart=".length)
    .split(/[\s\\]+/)
    .filter((one) => one !== "");
  const changed = change(args);
  if (isSame(args, changed)) return unit;
  return unit.replace(execStart, () => `ExecStart=${[program, ...changed].join(" \\\n    ")}`);
}

function isSame(one: Arguments, other: Arguments): boolean {
  return one.length === other.length && one.every((arg, index) => arg === other[index]);
}
