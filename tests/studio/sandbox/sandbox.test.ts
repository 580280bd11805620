import { expect, it } from 'bun:test';
import {
  postJson,
  readTokens,
  signIn,
  startTestSandbox,
  type Tokens,
} from '../../support/sandbox-account.ts';

// Tests that count refused refreshes rely on it. The rest of the sandbox: tour and browsers, which use it.
it('the sandbox refuses a spent refresh token, and ends its session, but no other', async () => {
  await using sandbox = await startTestSandbox();
  const refresh = ({ refresh_token }: Tokens) =>
    postJson(`${sandbox.upstream.url}/v1/auth/refresh`, { refresh_token });
  const [spent, other] = [await signIn(sandbox, 'Amina'), await signIn(sandbox, 'Amina')];
  // So that a web app sees early what breaks in a cookie.
  for (const token of [spent.access_token, spent.refresh_token])
    expect(token).toMatch(/^\d+\|(?=.*\+)(?=.*\/)[A-Za-z0-9+/]+=$/);
  const newest = await readTokens(await refresh(spent));
  const statuses: number[] = [];
  for (const tokens of [spent, newest, other]) statuses.push((await refresh(tokens)).status);
  expect(statuses).toEqual([401, 401, 200]);
});
