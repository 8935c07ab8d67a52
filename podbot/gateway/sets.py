"""Named sets of hosts for rules such as ``@registries``: data, with the reason for each host."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.frozen import Frozen


class HostSet(Frozen):
    """``purpose``: what a sandbox can do with it. ``hosts``: rule -> what it serves."""

    purpose: str
    hosts: Mapping[str, str]


SETS: Mapping[str, HostSet] = {
    "models": HostSet(
        "the APIs of the agents' models, and the servers that log in to them",
        {
            "api.anthropic.com": "Claude",
            "console.anthropic.com": "Claude's login, and its renewal",
            "platform.claude.com": "Claude's login, and its renewal",
            "claude.ai": "Claude's login",
            "api.openai.com": "Codex and OpenAI's models",
            "auth.openai.com": "Codex's login, and its renewal",
            "chatgpt.com": "Codex with a ChatGPT login",
            "generativelanguage.googleapis.com": "Gemini",
            "cloudcode-pa.googleapis.com": "Gemini with a Google login",
            "oauth2.googleapis.com": "Google's login, and its renewal",
            "opencode.ai": "OpenCode's own models",
            "models.dev": "OpenCode's list of models",
            "openrouter.ai": "models of many vendors",
        },
    ),
    "registries": HostSet(
        "packages of programming languages and distributions; most of them also accept uploads",
        {
            "*.npmjs.org": "npm, pnpm, Yarn 2 and later",
            "registry.yarnpkg.com": "Yarn 1",
            "repo.yarnpkg.com": "Yarn's own releases, for corepack",
            "nodejs.org": "headers for Node's native modules",
            "pypi.org": "pip's and uv's index",
            "files.pythonhosted.org": "its files",
            "index.crates.io": "Cargo's index",
            "static.crates.io": "its files",
            "crates.io": "its API",
            "proxy.golang.org": "Go modules",
            "sum.golang.org": "their checksums",
            "repo.maven.apache.org": "Maven Central",
            "repo1.maven.org": "Maven Central",
            "plugins.gradle.org": "Gradle's plugins",
            "services.gradle.org": "Gradle's releases",
            "downloads.gradle.org": "Gradle's releases",
            "rubygems.org": "gem and bundler",
            "index.rubygems.org": "their index",
            "repo.packagist.org": "Composer",
            "*.debian.org": "Debian's packages and security updates",
            "archive.ubuntu.com": "Ubuntu's packages",
            "security.ubuntu.com": "Ubuntu's security updates",
            "ports.ubuntu.com": "Ubuntu's packages for other processors",
        },
    ),
    "github": HostSet(
        "repositories, releases and the API of GitHub; whoever has a token can also write there",
        {
            "github.com": "git over https, and pages",
            "api.github.com": "its API",
            "codeload.github.com": "archives",
            "raw.githubusercontent.com": "single files",
            "objects.githubusercontent.com": "releases, and large files",
            "release-assets.githubusercontent.com": "releases",
            "github-cloud.githubusercontent.com": "large files",
        },
    ),
    "containers": HostSet(
        "images for containers in the sandbox",
        {
            "registry-1.docker.io": "Docker Hub",
            "auth.docker.io": "its login",
            "production.cloudflare.docker.com": "its files",
            "ghcr.io": "GitHub's images",
            "pkg-containers.githubusercontent.com": "their files",
            "quay.io": "Quay",
            "*.quay.io": "its files",
        },
    ),
}
