/** Makes a seccomp profile of what the systemd unit allows, so that a container can be restricted in the same way. */

import { $ } from 'bun';

/** Address family numbers of Linux. */
const FAMILIES: Record<string, number> = { AF_UNIX: 1, AF_INET: 2, AF_INET6: 10 };

/** @param unit the text of the unit file */
export async function seccompProfile(unit: string) {
  const groups = await readGroups();
  // These are permitted whatever a unit says.
  const allowed = new Set(expand('@default', groups));
  for (const [, isDenied, names] of unit.matchAll(/^SystemCallFilter=(~?)(.+)$/gm)) {
    for (const call of expand(names ?? '', groups)) {
      if (isDenied) allowed.delete(call);
      else allowed.add(call);
    }
  }
  const calls = ['socket', 'socketpair'];
  for (const call of calls) allowed.delete(call);
  const families = /^RestrictAddressFamilies=(.+)$/m.exec(unit)?.[1]?.split(' ') ?? [];
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    syscalls: [
      { names: [...allowed], action: 'SCMP_ACT_ALLOW' },
      ...families.map((family) => ({
        names: calls,
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value: FAMILIES[family], op: 'SCMP_CMP_EQ' }],
      })),
    ],
  };
}

/** systemd's groups of system calls, such as `@system-service`, and what each holds. */
async function readGroups(): Promise<Map<string, string>> {
  const listing = await $`systemd-analyze syscall-filter --no-pager`.quiet().text();
  const blocks = listing.split(/\n\n/).map((block) => block.replaceAll(/#.*/g, '').trim());
  return new Map(blocks.map((block) => [/^\S*/.exec(block)?.[0] ?? '', block.replace(/^\S*/, '')]));
}

function expand(names: string, groups: Map<string, string>): string[] {
  return (names.match(/\S+/g) ?? []).flatMap((name) =>
    name.startsWith('@') ? expand(groups.get(name) ?? '', groups) : name,
  );
}
