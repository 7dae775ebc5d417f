/** The flags of `longshore driver deploy` and `upgrade`, and what they ask for. */
import { controllerKinds, type DeployOptions } from "@longshore/deployment";
import { type Command, Option } from "commander";
import { wholeNumber } from "../flags.ts";
import { flagOf } from "./driver-deploy-fields.ts";
import { parseClass, parsePairs, parseTolerations } from "./driver-deploy-texts.ts";

/** What the flags were given as; those that are only there or not have the names of the options themselves. */
export interface DeployFlags extends Partial<Pick<DeployOptions, (typeof switches)[number][0]>> {
  readonly name: string;
  readonly image?: string;
  readonly namespace?: string;
  readonly sidecarImage?: string;
  readonly controller?: NonNullable<DeployOptions["controller"]>;
  readonly replicas?: string;
  readonly nodeSelector?: readonly string[];
  readonly tolerations?: readonly string[];
  readonly secretNamespace?: readonly string[];
  readonly storageClass?: readonly string[] | false;
  readonly reclaimPolicy?: NonNullable<DeployOptions["reclaimPolicy"]>;
  readonly bindingMode?: NonNullable<DeployOptions["bindingMode"]>;
  readonly fsGroupPolicy?: NonNullable<DeployOptions["fsGroupPolicy"]>;
  readonly driverArg?: readonly string[];
  readonly controllerArg?: readonly string[];
  readonly nodeArg?: readonly string[];
  readonly sidecarArg?: readonly string[];
  readonly credentialsSecret?: string;
  readonly kubeletDir?: string;
  readonly imagePullPolicy?: NonNullable<DeployOptions["imagePullPolicy"]>;
  readonly imagePullSecret?: readonly string[];
  readonly driverRequests?: readonly string[];
  readonly driverLimits?: readonly string[];
  readonly sidecarRequests?: readonly string[];
  readonly sidecarLimits?: readonly string[];
  readonly kubernetesVersion?: string;
}

/** Flags that are there or not: the field, and what it does. */
const switches = [
  ["attach", "the driver attaches volumes; without it the CSIDriver says attachRequired: false"],
  ["resize", "volumes can grow"],
  ["snapshot", "the snapshotter, and a VolumeSnapshotClass"],
  ["groupSnapshot", "snapshots of several volumes at once"],
  ["topology", "volumes can be used on some nodes only: they are made where the pod runs"],
  ["capacity", "report the driver's free capacity to the scheduler"],
  ["healthMonitor", "report volumes that are not healthy in events on their claims"],
  ["modify", "volumes can be modified (VolumeAttributesClass)"],
  ["nodeDeployment", "each node makes its own volumes"],
  ["separateSidecars", "a container for each sidecar instead of one for all"],
  ["snapshotController", "the snapshot controller as well, which is one per cluster"],
  ["secretsClusterWide", "let the sidecars read the secrets of all namespaces"],
  ["defaultClass", "make the first class the default class"],
  ["podInfo", "NodePublishVolume receives the pod's name, namespace and UID"],
  ["ephemeral", "pods may have volumes of the driver inline"],
  ["controllerRoot", "the controller's containers run as root"],
  ["hostDevices", "the driver on nodes sees the machine's /dev"],
] as const satisfies readonly (readonly [keyof DeployOptions, string])[];

/** Adds the flags. */
export function addDeployFlags(command: Command): Command {
  command
    .option("--namespace <namespace>", "where it runs; default: the driver's name with dashes for dots")
    .option("--sidecar-image <image>", "Longshore's own image; default that of this version")
    .addOption(
      new Option(
        "--controller <kind>",
        "how the controller runs; a daemonset runs controller and node part in one pod",
      ).choices(controllerKinds),
    )
    .option("--replicas <count>", "replicas of the controller; more than one elect a leader");
  for (const [field, what] of switches) {
    const flag = flagOf[field];
    command.option(flag, what);
    command.addOption(new Option(flag.replace("--", "--no-")).hideHelp());
  }
  command
    .option("--node-selector <labels>", "nodes for the controller: key=value,key=value", collect)
    .option(
      "--tolerations <taints>",
      "tolerations of the controller: key=value:NoSchedule,key:NoExecute",
      collect,
    )
    .option("--secret-namespace <namespace>", "a namespace with secrets of the driver (repeatable)", collect)
    .option("--storage-class <class>", "a class to make: name or name:key=value,… (repeatable)", collect)
    .option("--no-storage-class", "make no class")
    .addOption(
      new Option("--reclaim-policy <policy>", "reclaim policy of the classes").choices(["Delete", "Retain"]),
    )
    .addOption(
      new Option("--binding-mode <mode>", "binding mode of the classes").choices([
        "Immediate",
        "WaitForFirstConsumer",
      ]),
    )
    .addOption(
      new Option("--fs-group-policy <policy>", "fsGroupPolicy of the CSIDriver").choices([
        "ReadWriteOnceWithFSType",
        "File",
        "None",
      ]),
    )
    .option("--driver-arg <arg>", "an argument of the driver: --driver-arg=--v=5 (repeatable)", collect)
    .option(
      "--controller-arg <arg>",
      "an argument of the driver in the controller part (repeatable)",
      collect,
    )
    .option("--node-arg <arg>", "an argument of the driver on nodes (repeatable)", collect)
    .option("--sidecar-arg <arg>", "an argument of longshore run sidecars (repeatable)", collect)
    .option(
      "--credentials-secret <name>",
      "a secret whose keys are environment variables of the driver's controller",
    )
    .option("--kubelet-dir <dir>", "the kubelet's root directory; default /var/lib/kubelet")
    .addOption(
      new Option("--image-pull-policy <policy>", "when images are pulled").choices([
        "Always",
        "IfNotPresent",
        "Never",
      ]),
    )
    .option("--image-pull-secret <name>", "a secret for pulling images (repeatable)", collect)
    .option(
      "--driver-requests <amounts>",
      "resource requests of the driver's containers: cpu=10m,memory=64Mi",
      collect,
    )
    .option("--driver-limits <amounts>", "resource limits of the driver's containers: memory=512Mi", collect)
    .option("--sidecar-requests <amounts>", "resource requests of each Longshore container", collect)
    .option("--sidecar-limits <amounts>", "resource limits of each Longshore container", collect)
    .option("--no-create-namespace", "do not create the namespace");
  return command;
}

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

/** What the flags ask for: only what was given. @throws UsageError */
export function deployOptionsOf(
  flags: DeployFlags & { readonly createNamespace?: boolean },
): Partial<DeployOptions> & {
  readonly name: string;
} {
  const pairs = (field: keyof typeof flagOf, texts: readonly string[] | undefined) =>
    texts === undefined ? undefined : parsePairs(flagOf[field], texts);
  const { storageClass } = flags;
  return dropUndefined({
    name: flags.name,
    image: flags.image,
    namespace: flags.namespace,
    sidecarImage: flags.sidecarImage,
    controller: flags.controller,
    replicas: flags.replicas === undefined ? undefined : wholeNumber(flagOf.replicas, flags.replicas, 1, 100),
    ...Object.fromEntries(switches.map(([field]) => [field, flags[field]])),
    nodeSelector: pairs("nodeSelector", flags.nodeSelector),
    tolerations:
      flags.tolerations === undefined ? undefined : parseTolerations(flagOf.tolerations, flags.tolerations),
    secretNamespaces: flags.secretNamespace,
    storageClasses:
      storageClass === false ? [] : storageClass?.map((text) => parseClass(flagOf.storageClasses, text)),
    reclaimPolicy: flags.reclaimPolicy,
    bindingMode: flags.bindingMode,
    fsGroupPolicy: flags.fsGroupPolicy,
    driverArgs: flags.driverArg,
    controllerArgs: flags.controllerArg,
    nodeArgs: flags.nodeArg,
    sidecarArgs: flags.sidecarArg,
    credentialsSecret: flags.credentialsSecret,
    kubeletDir: flags.kubeletDir,
    imagePullPolicy: flags.imagePullPolicy,
    imagePullSecrets: flags.imagePullSecret,
    driverRequests: pairs("driverRequests", flags.driverRequests),
    driverLimits: pairs("driverLimits", flags.driverLimits),
    sidecarRequests: pairs("sidecarRequests", flags.sidecarRequests),
    sidecarLimits: pairs("sidecarLimits", flags.sidecarLimits),
    kubernetesVersion: flags.kubernetesVersion,
    // Commander's default of a flag that only switches off is true.
    createNamespace: flags.createNamespace === false ? false : undefined,
  });
}

function dropUndefined<T extends object>(given: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as never;
}
