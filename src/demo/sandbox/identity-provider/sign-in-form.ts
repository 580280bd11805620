/** Handles the login form of the sandbox's identity provider: shows it, checks it, and redirects to the client. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AccountClaims } from 'oidc-provider';
import type { Provider } from 'oidc-provider/lib/provider.js';
import { loginPage, MAX_NAME_LENGTH, messagePage, type Problem } from './login-page.ts';

/** `handleSignIn` gets the requests below this path; the rest of the path identifies the sign-in. */
export const SIGN_IN_PATH = '/sign-in/';

const MAX_FORM_BYTES = 4096;

export type SignInResponse =
  | { status: 200 | 400 | 413 | 422; html: string }
  | { status: 303; location: string };

/** POST checks the form; any other method shows it. */
export async function handleSignIn(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<SignInResponse> {
  let interaction: Awaited<ReturnType<Provider['interactionDetails']>>;
  try {
    interaction = await provider.interactionDetails(request, response);
  } catch (error) {
    if (!(error instanceof Error && error.name === 'SessionNotFound')) throw error;
    return refuse(400, 'It has expired, or was begun in another browser. Go back and sign in again.');
  }
  // A sign-in with prompt=consent comes here a second time, after the login.
  if (interaction.prompt.name === 'consent') {
    return { status: 303, location: await provider.interactionResult(request, response, { consent: {} }) };
  }

  const action = `${SIGN_IN_PATH}${interaction.uid}`;
  if (request.method !== 'POST') return { status: 200, html: loginPage({ action, name: 'demo' }) };

  const form = await readForm(request);
  if (form === undefined) return refuse(413, 'The form is too large.');
  const name = form.get('name')?.trim() ?? '';
  const problem = findProblem(name, form.get('password') ?? '');
  if (problem !== undefined) return { status: 422, html: loginPage({ action, name, problem }) };

  const login = { accountId: accountIdOf(name) };
  return { status: 303, location: await provider.interactionResult(request, response, { login }) };
}

/** The account id encodes the name, so that the identity provider needs no list of accounts. */
function accountIdOf(name: string): string {
  return Buffer.from(name).toString('base64url');
}

/** The claims of an account, decoded from its id. */
export function accountClaims(accountId: string): AccountClaims {
  const name = Buffer.from(accountId, 'base64url').toString();
  return { sub: accountId, name, preferred_username: name };
}

function refuse(status: 400 | 413, message: string): SignInResponse {
  return { status, html: messagePage('This sign-in cannot go on', message) };
}

function findProblem(name: string, password: string): Problem | undefined {
  if (name === '') return { field: 'name', message: 'Enter a name.' };
  if (name.length > MAX_NAME_LENGTH) {
    return { field: 'name', message: `Enter a name of at most ${MAX_NAME_LENGTH} characters.` };
  }
  if (password === '') return { field: 'password', message: 'Enter a password. Any will do.' };
  return undefined;
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_FORM_BYTES) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString());
}
