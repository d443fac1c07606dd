// A thin client: everything that is known about schedules is known by `chronex lsp`.
import * as vscode from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

function settings(): { timezone?: string; cron?: string; inlayHints: boolean } {
  const chosen = vscode.workspace.getConfiguration("chronex");
  return {
    timezone: chosen.get<string>("timezone") || undefined,
    cron: chosen.get<string>("cron") || undefined,
    inlayHints: chosen.get<boolean>("inlayHints", true),
  };
}

async function start(): Promise<void> {
  const command = vscode.workspace.getConfiguration("chronex").get<string>("path") || "chronex";
  const server: ServerOptions = { command, args: ["lsp"] };
  const options: LanguageClientOptions = {
    // Any file of these languages may hold a schedule; the server is silent on those that do not.
    documentSelector: [
      { language: "toml" },
      { language: "yaml" },
      { language: "github-actions-workflow" },
      { language: "crontab" },
      { language: "systemd-unit-file" },
      { language: "python" },
      // By name as well: without another extension VS Code knows neither TOML nor units.
      { pattern: "**/chronex.toml" },
      { pattern: "**/*.chronex.toml" },
      { pattern: "**/*.timer" },
      { pattern: "**/*.timer.d/*.conf" },
      { pattern: "**/*{trigger,triggers}.json" },
      { pattern: "**/chronex*.json" },
    ],
    initializationOptions: settings(),
  };
  client = new LanguageClient("chronex", "Chronex", server, options);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const hint = `${command} lsp did not start. Install Chronex with the language server, or set chronex.path.`;
    void vscode.window.showErrorMessage(`Chronex: ${hint} (${String(error)})`);
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.stop();
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("chronex.restart", async () => {
      await stop();
      await start();
    }),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("chronex.path")) {
        await stop();
        await start();
      } else if (change.affectsConfiguration("chronex")) {
        await client?.sendNotification("workspace/didChangeConfiguration", { settings: { chronex: settings() } });
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}
