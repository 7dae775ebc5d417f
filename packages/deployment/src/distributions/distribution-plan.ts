/** The deployment of a distribution's controller: what is asked for, checked and complete. */
import { isDns1123Label } from "@longshore/storage";
import { DeployOptionError } from "../deploy-fields.ts";
import {
  checkImage,
  checkNamespace,
  defaultSidecarImage,
  minorOf,
  replicasMax,
  systemNamespaces,
} from "../deployment-plan.ts";
import { featureGateOperatorLease, featureGateOperatorRules } from "../rules/feature-gate-operator-rules.ts";
import { migrationControllerLease, migrationControllerRules } from "../rules/migration-controller-rules.ts";
import type { AccessRule } from "../rules/rule.ts";

/** What is the same for each controller. */
interface CommonOptions {
  /** Default `longshore-system`. */
  readonly namespace?: string;
  /** Default: unless the cluster has the namespace anyway. */
  readonly createNamespace?: boolean;
  /** Longshore's image. */
  readonly image?: string;
  /** From 1 to 100; one of them leads. Default 2. */
  readonly replicas?: number;
  /** The oldest Kubernetes that must take the objects, such as `1.20`; default the newest that is known. */
  readonly kubernetesVersion?: string;
}

/** OpenShift's feature gate operator (docs/behaviour/migration-controllers.md B6). */
export interface FeatureGateOperatorOptions extends CommonOptions {
  readonly controller: "feature-gate-operator";
  /** Version of Kubernetes of the release, such as `1.21`. */
  readonly kubernetes: string;
  readonly order?: "any" | "two-sets";
  /** In-tree names of the plugins that the sets carry to CSI. */
  readonly plugins?: readonly string[];
}

/** Gardener's CSI migration controller (docs/behaviour/migration-controllers.md part A). */
export interface MigrationControllerOptions extends CommonOptions {
  readonly controller: "migration-controller";
  /** `spec.provider.type` of the shoots: a DNS label. */
  readonly providerType: string;
  /** The version with which the migration begins, such as `1.18`. */
  readonly csiMigrationKubernetesVersion: string;
  /** Legacy provisioner by name of a class. */
  readonly legacyStorageClasses?: Readonly<Record<string, string>>;
}

/** What can be asked for. */
export type DistributionOptions = FeatureGateOperatorOptions | MigrationControllerOptions;

/** A deployment that can be rendered. */
export interface DistributionPlan {
  /** Name of all objects, and of the chart. */
  readonly name: string;
  readonly controller: DistributionOptions["controller"];
  readonly namespace: string;
  readonly createNamespace: boolean;
  readonly image: string;
  readonly replicas: number;
  /** What names and rights do not depend on: a chart has it as a value. */
  readonly settings: readonly string[];
  /** What they do depend on. */
  readonly fixedSettings: readonly string[];
  readonly rules: readonly AccessRule[];
  /** Minor version of the oldest Kubernetes 1.x that must take the objects. */
  readonly kubernetesMinor: number;
}

/** The longest name of an object: what controllers append must leave room in labels. */
const nameMax = 52;

/** The plan for what is requested. @throws DeployOptionError when it cannot be */
export function planDistribution(options: DistributionOptions): DistributionPlan {
  const { namespace = "longshore-system", image = defaultSidecarImage, replicas = 2 } = options;
  checkImage("image", image);
  checkNamespace("namespace", namespace);
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > replicasMax) {
    throw new DeployOptionError("replicas", `${replicas} is not a whole number from 1 to ${replicasMax}`);
  }
  return {
    ...(options.controller === "feature-gate-operator" ? operatorPart(options) : controllerPart(options)),
    controller: options.controller,
    namespace,
    createNamespace: options.createNamespace ?? !systemNamespaces.includes(namespace),
    image,
    replicas,
    kubernetesMinor: minorOf(options.kubernetesVersion),
  };
}

type OwnPart = Pick<DistributionPlan, "name" | "settings" | "fixedSettings" | "rules">;

function operatorPart({ kubernetes, order, plugins }: FeatureGateOperatorOptions): OwnPart {
  return {
    name: featureGateOperatorLease,
    settings: [
      `--kubernetes=${kubernetes}`,
      ...(order === undefined ? [] : [`--order=${order}`]),
      ...(plugins === undefined ? [] : [`--plugins=${plugins.join(",")}`]),
    ],
    fixedSettings: [],
    rules: featureGateOperatorRules(),
  };
}

function controllerPart(options: MigrationControllerOptions): OwnPart {
  const { providerType, csiMigrationKubernetesVersion, legacyStorageClasses = {} } = options;
  const name = migrationControllerLease(providerType);
  if (!isDns1123Label(providerType) || name.length > nameMax) {
    const most = nameMax - migrationControllerLease("").length;
    throw new DeployOptionError(
      "providerType",
      `"${providerType}" names no objects: use at most ${most} lower-case letters, digits and dashes, as in aws`,
    );
  }
  const classes = Object.entries(legacyStorageClasses).map(([key, provisioner]) => `${key}:${provisioner}`);
  return {
    name,
    settings: [
      `--csi-migration-kubernetes-version=${csiMigrationKubernetesVersion}`,
      ...(classes.length === 0 ? [] : [`--legacy-storage-classes=${classes.join(",")}`]),
    ],
    fixedSettings: [`--provider-type=${providerType}`],
    rules: migrationControllerRules(providerType),
  };
}
