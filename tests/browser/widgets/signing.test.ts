import { describe, expect, it, mock, spyOn } from 'bun:test';
import { createSigning } from '../../../src/demo/studio/signing.ts';
import { fakeTime, NOW, openPage, viewOf } from './page.ts';

const PROVIDER = {
  issuer: 'https://id.test',
  authorizationEndpoint: 'https://id.test/oauth/authorize',
  clientId: 'studio',
  redirectUri: 'https://studio.test/callback',
};

function openSigning(path = '/') {
  const { document, storage } = openPage();
  const window = viewOf(document);
  window.history.replaceState(null, '', path);
  const client = {
    beginSignIn: mock(async (_provider: unknown) => new URL('https://id.test/oauth/authorize?state=1')),
    completeSignIn: mock(async () => true),
    signOut: mock(async () => {}),
  };
  const signing = createSigning({ client, identityProvider: PROVIDER, window, memory: storage });
  return { window, client, signing, address: () => window.location.href };
}

describe('signing in', () => {
  it('leaves the page for the identity provider', async () => {
    const { window, client, signing } = openSigning();
    const assign = spyOn(window.location, 'assign').mockImplementation(() => {});
    await signing.signIn();
    expect(client.beginSignIn.mock.calls).toEqual([[PROVIDER]]);
    expect(assign.mock.calls.map(String)).toEqual(['https://id.test/oauth/authorize?state=1']);
  });

  it('is completed at the callback, which gives way to the page itself, and its time is remembered', async () => {
    fakeTime();
    const { signing, address } = openSigning('/callback');
    expect(signing.signedInAt()).toBeUndefined();
    await signing.complete();
    expect(address()).toBe('https://studio.test/');
    expect(signing.signedInAt()).toEqual(NOW);
  });

  it('leaves an address alone that is no answer of the identity provider', async () => {
    const { client, signing, address } = openSigning('/?listen=c1');
    client.completeSignIn.mockResolvedValue(false);
    await signing.complete();
    expect(address()).toBe('https://studio.test/?listen=c1');
    expect(signing.signedInAt()).toBeUndefined();
  });

  it('that fails is told, does not count, and gives way to the page as well', async () => {
    const { client, signing, address } = openSigning('/callback');
    const error = new Error('denied');
    client.completeSignIn.mockRejectedValue(error);
    await expect(signing.complete()).rejects.toBe(error);
    expect(address()).toBe('https://studio.test/');
    expect(signing.signedInAt()).toBeUndefined();
  });
});

describe('signing out', () => {
  it('is the gateway’s to do, and fails when it does not', async () => {
    const { client, signing } = openSigning();
    const error = new Error('no answer');
    client.signOut.mockRejectedValueOnce(error);
    await expect(signing.signOut()).rejects.toBe(error);
    await signing.signOut();
    expect(client.signOut).toHaveBeenCalledTimes(2);
  });
});
