/** Renders the pages of the sandbox's identity provider: the login form, and a message. */

import { createHash } from 'node:crypto';

/** In UTF-16 code units. The account id encodes the name, and a subject may have at most 255 characters. */
export const MAX_NAME_LENGTH = 60;

const style = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { display: grid; min-height: 100vh; margin: 0; place-items: center; background: Canvas; color: CanvasText }
main { box-sizing: border-box; width: 100%; max-width: 24rem; padding: 1.5rem }
h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.2 }
label { display: block; margin: 1rem 0 .25rem; font-weight: 600 }
input, button { box-sizing: border-box; width: 100%; min-height: 2.75rem; padding: .5rem .75rem; font: inherit }
input { border: 1px solid GrayText; border-radius: .375rem; background: Field; color: FieldText }
button { margin-top: 1.5rem; border: 0; border-radius: .375rem; background: #3730a3; color: #fff; font-weight: 600 }
button:hover { background: #312e81 }
:focus-visible { outline: 3px solid light-dark(#4f46e5, #818cf8); outline-offset: 2px }
[role=alert] { margin: 1rem 0 0; color: light-dark(#b91c1c, #fca5a5); font-weight: 600 }
`;

const styleHash = `'sha256-${createHash('sha256').update(style).digest('base64')}'`;

/**
 * The Content-Security-Policy of these pages.
 *
 * @param formTargets the origins of the redirect URIs: browsers apply `form-action` to each redirect after the
 * form, and the last one goes to the client
 */
export function pagePolicy(formTargets: readonly string[]): string {
  return [
    "default-src 'none'",
    `style-src ${styleHash}`,
    'img-src data:',
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

export interface LoginPage {
  /** The path to which the browser posts the fields `name` and `password`, URL-encoded. */
  action: string;
  name: string;
  /** What was wrong with the previous attempt. */
  problem?: Problem;
}

export interface Problem {
  field: 'name' | 'password';
  message: string;
}

export function loginPage({ action, name, problem }: LoginPage): string {
  const alert = problem ? `<p id="problem" role="alert">${Bun.escapeHTML(problem.message)}</p>` : '';
  const blame = (field: Problem['field']) =>
    problem?.field === field ? ' aria-invalid="true" aria-describedby="problem"' : '';
  // `novalidate` lets the server word the message, so that it is the same in every browser.
  return page(
    'Sign in',
    `<p>This is the sandbox: any name and any password will do.</p>
${alert}
<form method="post" action="${Bun.escapeHTML(action)}" novalidate>
<label for="name">Name</label>
<input id="name" name="name" value="${Bun.escapeHTML(name)}" maxlength="${MAX_NAME_LENGTH}" autocomplete="username" required${blame('name')}>
<label for="password">Password</label>
<input id="password" name="password" type="password" value="sandbox" autocomplete="off" required${blame('password')}>
<button type="submit">Sign in</button>
</form>`,
  );
}

/** A page without a form, for a sign-in that cannot continue. */
export function messagePage(heading: string, message: string): string {
  return page(heading, `<p>${Bun.escapeHTML(message)}</p>`);
}

function page(heading: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${Bun.escapeHTML(heading)} - Sandbox</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
<h1>${Bun.escapeHTML(heading)}</h1>
${content}
</main>
</body>
</html>
`;
}
