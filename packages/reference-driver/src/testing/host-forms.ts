/** The host forms that tests of machine work run against; the kernel's only with root on Linux. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { type Host, kernelHost, SimulatedHost, unprivilegedHost } from "@longshore/runtime";

/** A host with an empty directory for one test. */
export interface HostForTest {
  readonly host: Host;
  readonly dir: string;
  /** Unmounts and detaches what the test left, and removes the directory. */
  close(): Promise<void>;
}

async function real(host: Host): Promise<HostForTest> {
  const dir = await realpath(await mkdtemp(`${tmpdir()}/longshore-`));
  return {
    host,
    dir,
    async close() {
      for (const mount of [...(await host.listMounts(dir))].reverse()) await host.unmount(mount.target);
      const disks = `${dir}/cloud/disks`;
      for (const name of (await host.readDirectory(disks)) ?? []) await host.detachLoop(`${disks}/${name}`);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const forms: Readonly<Record<Host["form"], () => Promise<HostForTest>>> = {
  simulated: async () => ({ host: new SimulatedHost(), dir: "/t", close: async () => {} }),
  unprivileged: () => real(unprivilegedHost()),
  kernel: () => real(kernelHost()),
};

const hasKernel = process.platform === "linux" && process.getuid?.() === 0;

/** The forms that this machine allows, by name. */
export const hostForms: readonly (readonly [name: Host["form"], make: () => Promise<HostForTest>])[] = [
  ["simulated", forms.simulated],
  ["unprivileged", forms.unprivileged],
  ...(hasKernel ? ([["kernel", forms.kernel]] as const) : []),
];
