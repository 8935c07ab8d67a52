# Runs INSIDE the sandbox: what a shell reads first, and should not print.
echo "Welcome to this image"
