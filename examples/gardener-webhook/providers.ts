/** The providers of Gardener whose in-tree plugins migrate, as the webhook configures them. */
import { type MigrationGates, migrationGates } from "@longshore/translation";

/** One provider. */
export interface Provider {
  /** `spec.provider.type` of its shoots. */
  readonly type: string;
  /** Value of `--cloud-provider`. */
  readonly cloudProvider: string;
  /** The gates of its plugins. */
  readonly gates: readonly MigrationGates[];
}

function provider(type: string, cloudProvider: string, ...plugins: readonly string[]): Provider {
  const gates = migrationGates.filter(({ inTreeName }) => plugins.includes(inTreeName));
  return { type, cloudProvider, gates };
}

/** All of them. */
export const providers: readonly Provider[] = [
  provider("aws", "aws", "kubernetes.io/aws-ebs"),
  provider("azure", "azure", "kubernetes.io/azure-disk", "kubernetes.io/azure-file"),
  provider("gcp", "gce", "kubernetes.io/gce-pd"),
  provider("openstack", "openstack", "kubernetes.io/cinder"),
];
