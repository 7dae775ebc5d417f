import { clusterPlugins } from "@longshore/local";
import { describe, expect, it } from "vitest";
import { mayStall } from "./describe-skew.ts";
import { playVersions, versionStories } from "./skew-versions.ts";

const plugins = clusterPlugins.map(({ name }) => name);

/** Volumes that no controller attaches are served whatever the controller manager's gates are. */
const isAttached = (plugin: string) => plugin !== "azure-file" && plugin !== "portworx-volume";

describe.each(["upstream", "node-only"] as const)("%s", (mode) => {
  const stories = versionStories(plugins, mode);

  it("has stories of kubelets one to three versions behind for each version that switches a plugin on", () => {
    expect([...new Set(stories.map(({ behind }) => behind))]).toEqual([1, 2, 3]);
    const switched = stories.flatMap((story) => story.plugins);
    // The migration of RBD never went on by default.
    expect(new Set(switched)).toEqual(new Set(plugins.filter((plugin) => plugin !== "rbd")));
  });

  it.each(stories.map((story) => [story.plugins.join(" and "), story] as const))(
    "%s: $minor over kubelets $behind behind is upgraded, downgraded with $downgrade and upgraded again (migration-controllers.md C1)",
    async (_plugins, story) => {
      const { steps, violations } = await playVersions(story);
      expect(violations).toEqual([]);
      const stalled = steps.filter(({ stalls }) => stalls.length > 0).map(({ words }) => words);
      if (!mayStall(story) || !story.plugins.some(isAttached)) expect(stalled).toEqual([]);
      else expect(stalled[0]).toMatch(/^downgrade: controller manager: /);
    },
  );
});
