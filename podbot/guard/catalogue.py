"""The catalogue of files that run, or are trusted, on the host, as data.

A pattern is a name (``Makefile``), a shape with one star (``*.code-workspace``, ``mise.*.toml``), or either of them
below directories (``.vscode/tasks.json``, ``.run/*.xml``, ``.cursor/**`` for everything below). It applies in every
directory of the workspace except in :data:`DEPENDENCIES`. Git's own files need more than names: see ``gitdirs`` and
``gitkeys``.
"""

from __future__ import annotations

from podbot.guard.marks import AGENT, BUILD, EDITOR, FILE, GIT_OR_SHELL, SETTINGS
from podbot.guard.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Rule(NamedTuple):
    """``patterns``: separated by spaces; empty if code finds the files. ``acts``: the program that acts on them."""

    danger: int
    patterns: str
    acts: str
    why: str


RULES: Mapping[str, Rule] = {
    # 1: a mere `git status` or `cd`
    "git.key": Rule(
        GIT_OR_SHELL, "", "git", "its configuration names a program or another file or place, or weakens its safety"
    ),
    "git.config": Rule(GIT_OR_SHELL, "", "git", "it cannot be read here the way git reads it"),
    "git.hook": Rule(GIT_OR_SHELL, "", "git", "git runs it at a commit, a checkout, a merge or a push"),
    "git.script": Rule(GIT_OR_SHELL, "", "git", "the configuration has git run it"),
    "git.included": Rule(GIT_OR_SHELL, "", "git", "the configuration includes it"),
    "git.worktree": Rule(GIT_OR_SHELL, "", "git", "it writes and removes files there, at a checkout or a stash"),
    "git.unknown": Rule(GIT_OR_SHELL, "", "git", "podbot does not know this key, which may be another tool's"),
    "git.hides": Rule(GIT_OR_SHELL, "", "git", "it does not show all changes, or shows other ones"),
    "git.push": Rule(
        GIT_OR_SHELL, "", "git", "the next `git push` or fetch goes elsewhere, or writes or removes other branches"
    ),
    "git.address": Rule(GIT_OR_SHELL, "", "git", "the next `git push` and fetch go there, and went elsewhere before"),
    "git.record": Rule(GIT_OR_SHELL, "", "git", "it leads git to another checkout than before"),
    "git.link": Rule(GIT_OR_SHELL, "", "git", "it follows the link, and writes where that leads"),
    "git.hard link": Rule(GIT_OR_SHELL, "", "git", "it writes to the file, which acts by its other name"),
    "git.alternates": Rule(GIT_OR_SHELL, "", "git", "it reads the objects of another repository"),
    "git.attributes": Rule(GIT_OR_SHELL, "", "git", "it selects the filters and drivers that git runs"),
    "git.instaweb": Rule(GIT_OR_SHELL, "", "git", "`git instaweb` runs it"),
    "git.commondir": Rule(GIT_OR_SHELL, "", "git", "it leads git to another configuration and other hooks"),
    "git.file": Rule(GIT_OR_SHELL, "", "git", "it leads git to another git directory"),
    "git.repository": Rule(GIT_OR_SHELL, "", "git", "a new repository: git uses its configuration and hooks there"),
    "git.steps": Rule(GIT_OR_SHELL, "", "git", "`git rebase --continue`, or `git cherry-pick --continue`, runs it"),
    "direnv": Rule(GIT_OR_SHELL, ".envrc", "direnv", "it runs at `cd`, once it is allowed"),
    "mise": Rule(
        GIT_OR_SHELL,
        ".mise.toml mise.toml .mise.*.toml mise.*.toml .mise/** mise/config.toml mise/config.*.toml"
        " mise/conf.d/** mise/tasks/** .config/mise.toml .config/mise.*.toml"
        " .config/mise/** .mise-tasks/** mise-tasks/** .miserc.toml .miserc.*.toml .config/miserc.toml .rtx.toml"
        " .rtx.*.toml",
        "mise",
        "it sets variables, and runs hooks, at `cd`",
    ),
    "tool-versions": Rule(GIT_OR_SHELL, ".tool-versions", "asdf, mise", "it chooses which programs a name starts"),
    "autoenv": Rule(
        GIT_OR_SHELL,
        ".autoenv.zsh .autoenv .autoenv_leave.zsh .envrc.local .rvmrc",
        "autoenv, direnv, rvm",
        "a shell reads it at `cd`",
    ),
    "hg": Rule(
        GIT_OR_SHELL,
        ".hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .hg/requires .sl/config .sl/sharedpath .sl/requires .jj/repo"
        " .jj/repo/config.toml .jj/repo/store/git_target .jj/working_copy/config.toml",
        "Mercurial, Sapling, jj",
        "its hooks and extensions run, or those of a repository that it leads to",
    ),
    # 2: an editor opens the directory
    "vscode": Rule(
        EDITOR,
        ".vscode/tasks.json .vscode/settings.json .vscode/launch.json .vscode/extensions.json"
        " .vscode/c_cpp_properties.json .vscode/cmake-kits.json .vscode/cmake-variants.json *.code-workspace",
        "VS Code",
        "tasks can run when the folder opens, and settings name programs",
    ),
    "jetbrains": Rule(
        EDITOR,
        ".idea/runConfigurations/** .idea/startup.xml .idea/watcherTasks.xml .idea/externalDependencies.xml"
        " .idea/gradle.xml .idea/tools/** .run/**",
        "JetBrains IDEs",
        "run configurations, start-up tasks and file watchers start programs",
    ),
    "devcontainer": Rule(
        EDITOR, ".devcontainer/** .devcontainer.json", "dev containers", "commands run on the host and in the container"
    ),
    "vim": Rule(
        EDITOR,
        ".nvim.lua .lazy.lua .nvimrc .exrc .vimrc _vimrc .gvimrc .lvimrc .local.vimrc .vim/** .nvim/**",
        "vim, neovim",
        "it runs with 'exrc' or a plugin for local settings",
    ),
    "emacs": Rule(EDITOR, ".dir-locals.el .dir-locals-2.el", "Emacs", "variables of the directory can be code"),
    "zed": Rule(EDITOR, ".zed/**", "Zed", "tasks and settings name programs"),
    "editors": Rule(
        EDITOR,
        ".helix/** .nova/** .fleet/** .theia/** *.sublime-project .externalToolBuilders/** .kateproject .lazygit.yml",
        "an editor",
        "project settings name programs",
    ),
    "r": Rule(EDITOR, ".Rprofile .Renviron .RData", "R, RStudio", "it runs when R starts in the directory"),
    # 3: someone starts an agent
    "claude": Rule(
        AGENT,
        ".claude/settings.json .claude/settings.local.json .claude/CLAUDE.md .claude/hooks/** .claude/commands/**"
        " .claude/agents/** .claude/skills/** .claude/plugins/** .claude/rules/** .claude/output-styles/**"
        " .claude/workflows/** .claude/agent-memory/** .claude/scheduled_tasks.json .claude/loop.md"
        " .claude/launch.json .claude-plugin/**",
        "Claude Code",
        "hooks run, permissions hold, and instructions are obeyed",
    ),
    "mcp": Rule(
        AGENT,
        ".mcp.json mcp.json .vscode/mcp.json .mcp/**",
        "agents and editors",
        "it names programs to start as MCP servers",
    ),
    "codex": Rule(AGENT, ".codex/** .agents/**", "Codex", "configuration, hooks and skills of the project"),
    "cursor": Rule(AGENT, ".cursor/** .cursorrules", "Cursor", "MCP servers, hooks and rules of the project"),
    "gemini": Rule(AGENT, ".gemini/**", "Gemini CLI", "settings, commands and MCP servers of the project"),
    "opencode": Rule(
        AGENT,
        "opencode.json opencode.jsonc .opencode/** tui.json tui.jsonc",
        "opencode",
        "plugins, commands and MCP servers run",
    ),
    "agents": Rule(
        AGENT,
        ".windsurf/** .windsurfrules .clinerules .clinerules/** .roo/** .roomodes .roorules .continue/** .continuerules"
        " .junie/** .kiro/** .amazonq/** .goosehints .aider.conf.yml .crush.json crush.json .crush/** .factory/**"
        " .trae/** .augment/** .pi/** .amp/** .vibe/** .openhands/** .cline/** .kilo/** .qwen/** .rules .rovodev/**"
        " .goose/** .agent/** .kilocode/**",
        "other agents",
        "rules, tools and MCP servers of the project",
    ),
    "instructions": Rule(
        AGENT,
        "AGENTS.md AGENTS.override.md AGENT.md CLAUDE.md CLAUDE.local.md CONTEXT.md GEMINI.md QWEN.md WARP.md"
        " .github/copilot-instructions.md .github/instructions/** .github/agents/** .github/prompts/**"
        " .github/hooks/** .github/skills/** .github/chatmodes/** .github/lsp.json",
        "agents",
        "an agent takes it as its operator's instructions",
    ),
    # 4: built, tested or installed
    "make": Rule(
        BUILD,
        "Makefile makefile GNUmakefile Makefile.* makefile.* GNUmakefile.* *.mk *.mk.sh s.Makefile SCCS/s.Makefile"
        " RCS/Makefile,v Justfile justfile justFile JUSTFILE .justfile Taskfile.yml Taskfile.yaml taskfile.yml"
        " taskfile.yaml Rakefile rakefile Rakefile.rb rakefile.rb noxfile.py tox.ini tox.toml wscript Makefile.PL"
        " Build.PL dodo.py fabfile.py SConstruct SConscript"
        " CMakeLists.txt CMakePresets.json CMakeUserPresets.json meson.build BUILD BUILD.bazel WORKSPACE"
        " WORKSPACE.bazel MODULE.bazel .bazelrc .bazeliskrc tools/bazel .buckconfig build.ninja configure Earthfile"
        " Tiltfile dagger.json build.zig build.zig.zon conanfile.py ansible.cfg .west/config",
        "make and similar tools",
        "it runs at the next build",
    ),
    "node.scripts": Rule(BUILD, "package.json", "npm, pnpm, yarn", "its scripts run at install, test and build"),
    "node": Rule(
        BUILD,
        ".npmrc .yarnrc .yarnrc.yml .yarn/releases/** .yarn/plugins/** .pnpmfile.cjs .pnpmfile.mjs"
        " pnpm-workspace.yaml package.yaml package.json5 bunfig.toml .yarn/sdks/** .puppeteerrc.cjs .node-gyp/**"
        " binding.gyp .pnp.cjs .pnp.js .pnp.loader.mjs",
        "npm, pnpm, yarn, bun",
        "it sets where packages come from, and which program installs them",
    ),
    "node.tools": Rule(
        BUILD,
        "*.config.js *.config.cjs *.config.mjs *.config.ts *.config.mts *.config.cts .babelrc .babelrc.js .babelrc.cjs"
        " .babelrc.mjs .babelrc.json babel.config.json tsconfig.json tsconfig.*.json jsconfig.json .swcrc .nycrc .c8rc"
        " .eslintrc .eslintrc.js .eslintrc.cjs .eslintrc.json .eslintrc.yml .eslintrc.yaml .prettierrc .prettierrc.js"
        " .prettierrc.cjs .prettierrc.mjs .prettierrc.json .prettierrc.yml .prettierrc.yaml .prettierrc.toml"
        " .prettierrc.json5 .prettierrc.ts .prettierrc.mts .prettierrc.cts .stylelintrc .stylelintrc.js"
        " .stylelintrc.cjs .stylelintrc.mjs .stylelintrc.json .stylelintrc.yml .stylelintrc.yaml .mocharc.yaml"
        " .mocharc.jsonc gulpfile.* vitest.workspace.* Gruntfile.* .mocharc.js .mocharc.cjs .mocharc.json .mocharc.yml"
        " karma.conf.* webpack.config.babel.js .oxlintrc.json .markdownlint-cli2.* .changeset/config.json .storybook/**"
        " .vitepress/**",
        "JavaScript tools",
        "it is code that the tool loads, or names it; also from an editor's plugin",
    ),
    "python": Rule(
        BUILD,
        "conftest.py setup.py entry_points.txt *.egg-link pdm_build.py sitecustomize.py usercustomize.py *.pth"
        " pytest.ini setup.cfg mypy.ini"
        " .mypy.ini .pylintrc pylintrc .pylintrc.toml pylintrc.toml .pytest.ini pytest.toml .pytest.toml .flake8"
        " .coveragerc mkdocs.yml mkdocs.yaml docs/conf.py doc/conf.py docs/source/conf.py .pdbrc .pythonrc.py"
        " pip.conf .condarc hatch_build.py pixi.toml *.pyc",
        "Python, pip, pytest",
        "it runs at import, test or install",
    ),
    "python.module": Rule(BUILD, "*.so", "Python", "it is imported instead of the source file beside it"),
    "python.version": Rule(
        BUILD, ".python-version .python-versions", "uv, pyenv", "the interpreter that it names is no version: it is run"
    ),
    "python.project": Rule(BUILD, "pyproject.toml", "pip, pytest and similar tools", "its build and tool settings run"),
    "requirements": Rule(
        BUILD,
        "requirements*.txt requirements*.in requirements/*.txt requirements/*.in"
        " *-requirements.txt *_requirements.txt *-requirements.in constraints*.txt",
        "pip, uv",
        "it has an option, a file or an address, from which something is installed",
    ),
    "locks": Rule(
        BUILD,
        "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock uv.lock poetry.lock pdm.lock"
        " pylock.toml pylock.*.toml Pipfile.lock Cargo.lock Gemfile.lock gems.locked composer.lock",
        "package managers",
        "it leads to a package that is not a public registry's",
    ),
    "rust.crate": Rule(
        BUILD, "Cargo.toml", "cargo", "a build script, a replaced source or a setting runs, or chooses what runs"
    ),
    "rust": Rule(
        BUILD,
        "build.rs .config/nextest.toml .cargo/config.toml .cargo/config rust-toolchain.toml rust-toolchain",
        "cargo, rustup",
        "it runs, or chooses what runs, at a build; also from an editor's language server",
    ),
    "jvm": Rule(
        BUILD,
        "build.gradle build.gradle.kts settings.gradle settings.gradle.kts init.gradle gradle.properties gradlew"
        " gradle/wrapper/** buildSrc/** pom.xml mvnw .mvn/** build.xml *.sbt build.sc build.mill project/plugins.sbt"
        " project/build.properties"
        " deps.edn project.clj profiles.clj bb.edn",
        "Gradle, Maven and similar tools",
        "it runs at a build or an import into an IDE",
    ),
    "ruby": Rule(
        BUILD, "Gemfile gems.rb .bundle/config .irbrc .pryrc .rspec *.gemspec", "Ruby", "it is code, or loads it"
    ),
    "php": Rule(
        BUILD,
        ".user.ini phpunit.xml phpunit.xml.dist psalm.xml psalm.xml.dist phpcs.xml phpcs.xml.dist .phpcs.xml"
        " phpstan.neon phpstan.neon.dist phpstan.dist.neon .php-cs-fixer.php .php-cs-fixer.dist.php"
        " artisan",
        "PHP",
        "it is code, or names it",
    ),
    "php.composer": Rule(BUILD, "composer.json", "Composer", "scripts and plugins run at install"),
    "go.mod": Rule(BUILD, "go.mod", "go", "it replaces a module, or chooses the program that builds"),
    "go": Rule(
        BUILD,
        "go.work .golangci.yml .golangci.yaml magefile.go .goreleaser.yml .goreleaser.yaml .air.toml",
        "Go's tools",
        "it names code and programs that run",
    ),
    "dotnet": Rule(
        BUILD,
        "*.props *.targets *.csproj.user Directory.Build.rsp nuget.config NuGet.Config global.json"
        " .config/dotnet-tools.json build.cake *.csproj *.fsproj *.vbproj *.vcxproj",
        ".NET",
        "targets run at a build, also from an editor",
    ),
    "beam": Rule(BUILD, "mix.exs rebar.config .iex.exs .formatter.exs", "Elixir, Erlang", "it is code"),
    "nix": Rule(
        BUILD,
        "flake.nix shell.nix default.nix devenv.nix devenv.yaml devbox.json .flox/env/manifest.toml",
        "nix, direnv, devbox, flox",
        "it runs in `nix develop` and its like, and by an allowed .envrc",
    ),
    "swift": Rule(BUILD, "Package.swift Podfile Fastfile", "Swift, CocoaPods", "it is code"),
    "debuggers": Rule(BUILD, ".gdbinit .lldbinit", "gdb, lldb", "it runs when a debugger starts there"),
    "pre-commit": Rule(
        BUILD,
        ".pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml lefthook.yml lefthook.yaml"
        " lefthook.toml lefthook.json .lefthook.yml .lefthook.yaml .lefthook.toml .lefthook.json lefthook-local.yml"
        " lefthook-local.yaml lefthook-local.toml lefthook-local.json .lefthook-local.yml .lefthook-local.yaml"
        " .lefthook-local.toml .lefthook-local.json .lefthook/** .lefthook-local/** .husky/** .overcommit.yml hk.pkl"
        " .lintstagedrc .lintstagedrc.json .lintstagedrc.js .lintstagedrc.cjs .lintstagedrc.mjs .lintstagedrc.yaml"
        " .lintstagedrc.yml",
        "pre-commit, husky and similar tools",
        "an installed hook runs its commands at the next commit",
    ),
    "containers": Rule(
        BUILD,
        "Dockerfile Containerfile docker-compose.yml docker-compose.yaml docker-compose.override.yml"
        " docker-compose.override.yaml compose.yml"
        " compose.yaml compose.override.yaml Procfile.* Vagrantfile skaffold.yaml docker-bake.hcl",
        "Docker, Podman",
        "it runs with the host directories that it mounts",
    ),
    "ci": Rule(
        BUILD,
        ".github/workflows/** .github/actions/** action.yml action.yaml .gitlab-ci.yml .circleci/**"
        " Jenkinsfile .travis.yml"
        " azure-pipelines.yml bitbucket-pipelines.yml .drone.yml .woodpecker.yml .woodpecker/** .teamcity/**"
        " .buildkite/** .gitea/workflows/**"
        " .forgejo/workflows/**",
        "CI",
        "it runs on your CI with its secrets, once pushed",
    ),
    # 5: files that are not what they seem
    "setuid": Rule(FILE, "", "any user of this host", "it runs with its owner's or group's rights"),
    "capability": Rule(FILE, "", "any user of this host", "it runs with capabilities"),
    "link": Rule(FILE, "", "any program", "it leads out of the workspace, so reads and writes go elsewhere"),
    "hard link": Rule(FILE, "", "any program", "the file has another name outside the scanned directories"),
    "special": Rule(FILE, "", "any program", "it is not a regular file: opening it may block, or reach a process"),
    "name": Rule(FILE, "", "terminals and scripts", "its name has characters that are not seen, or that reorder it"),
    # 6: what no rule names
    "settings": Rule(SETTINGS, "", "a tool", "it looks like settings that a tool reads in this directory"),
}

DEPENDENCIES = frozenset({
    "node_modules", ".venv", "venv", "virtualenv", ".tox", ".nox", "target", "__pycache__", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", "site-packages", "bower_components", ".gradle", ".terraform", ".next",
    ".nuxt", ".pnpm-store", ".eggs", ".hypothesis", ".cache", "Pods", "vendor", ".direnv",
})  # fmt: skip
"""Directories of installed and built files: only git directories and class 5 without links are found there."""
