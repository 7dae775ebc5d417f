/**
 * The control-plane webhook of a provider: it reads the annotation that the CSI migration controller sets on the Cluster, and
 * configures what is written. Source: docs/behaviour/migration-controllers.md A1 (the contract), A7.
 *
 * Invariant: what cannot be judged (no Cluster, a malformed Shoot, an API server that does not answer) is refused, never
 * let through with the wrong gates.
 */
import type { KubeClient } from "@longshore/kube";
import { type Cluster, clusters } from "@longshore/migration/gardener";
import type { AdmissionRequest, Handler, Verdict } from "./admission-server.ts";
import {
  type ComponentDeployment,
  componentNames,
  type MachineConfig,
  patchDeployment,
  patchMachineConfig,
} from "./control-plane.ts";
import { shootStateOf } from "./migration-phase.ts";
import type { Provider } from "./providers.ts";
import { refusalOfCluster, refusalOfShoot } from "./worker-versions.ts";

/** What the webhook is started with. */
export interface WebhookOptions {
  readonly provider: Provider;
  /** The version with which the migration begins: that of the CSI migration controller. */
  readonly csiMigrationVersion: string;
}

const untouched: Verdict = { allowed: true };

/** The handlers, by path. */
export function webhookHandlers(
  kube: Pick<KubeClient, "get">,
  options: WebhookOptions,
): Readonly<Record<string, Handler>> {
  return {
    "/mutate-control-plane": (request, signal) => mutate(kube, options, request, signal),
    "/validate-workers": async (request) => validate(options, request),
  };
}

async function mutate(
  kube: Pick<KubeClient, "get">,
  { provider, csiMigrationVersion }: WebhookOptions,
  request: AdmissionRequest,
  signal: AbortSignal,
): Promise<Verdict> {
  const { kind, namespace = "", object } = request;
  const isMachine = kind === "OperatingSystemConfig";
  if (!isMachine && !(kind === "Deployment" && componentNames.includes(request.name ?? ""))) return untouched;
  // The Cluster is read each time: the controller patches as soon as it has stored the annotation, before a watch shows it.
  const cluster = await kube.get(clusters, { name: namespace }, { signal });
  if (cluster === undefined) {
    return refused(
      500,
      `Cluster ${namespace} is not there: it is made before the control plane of its shoot`,
    );
  }
  const state = shootStateOf(cluster, csiMigrationVersion);
  if (state.providerType !== provider.type) return untouched;
  const patch = isMachine
    ? patchMachineConfig(object as MachineConfig, state, provider)
    : patchDeployment(object as ComponentDeployment, state, provider);
  return { allowed: true, patch };
}

type RawShoot = { readonly spec?: { readonly provider?: { readonly type?: unknown } } } | null | undefined;

function validate({ provider, csiMigrationVersion }: WebhookOptions, request: AdmissionRequest): Verdict {
  const { object, oldObject } = request;
  const isShoot = request.kind === "Shoot";
  const shoot = (isShoot ? object : (object as Cluster).spec?.shoot) as RawShoot;
  if (shoot?.spec?.provider?.type !== provider.type) return untouched;
  const message = isShoot
    ? refusalOfShoot(object, oldObject, csiMigrationVersion)
    : refusalOfCluster(object as Cluster, oldObject as Cluster | undefined, csiMigrationVersion);
  return message === undefined ? untouched : refused(422, message);
}

function refused(code: number, message: string): Verdict {
  return { allowed: false, code, message };
}
