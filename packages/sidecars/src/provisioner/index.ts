export { type ProvisionerOptions, startProvisioner } from "./provisioner.ts";
